import type { SingleOptions } from "../deliver/consumer-options.ts";
import { type DeliverOptions, deliver } from "../deliver/deliver.ts";
import type { DelivererOptions } from "../deliver/deliverer.ts";
import type { Delivery, DeliveryContext } from "../deliver/delivery.ts";
import type { DeliveryEvent } from "../deliver/delivery-event.ts";

/** So short that a test need not wait. */
const shortPauses = { firstPauseMs: 20, longestPauseMs: 100, giveUpAfterMs: 1_000_000 };

type Handle = (delivery: Delivery, context: DeliveryContext) => Promise<unknown>;

/** A consumer under test, with what it was handed and what was seen of it. */
export interface TestConsumer {
  handed: Delivery[];
  ids: () => number[];
  events: DeliveryEvent[];
  logged: string[];
  /** Ends it. @returns when it has ended */
  stop: () => Promise<void>;
  ended: Promise<void>;
}

/** @param options.handle called after the delivery has been noted */
export function startDelivering(
  options: Partial<Omit<SingleOptions, "handle">> & DelivererOptions & { handle?: Handle },
): TestConsumer {
  const { handle, ...others } = options;
  const controller = new AbortController();
  const handed: Delivery[] = [];
  const events: DeliveryEvent[] = [];
  const logged: string[] = [];
  const log = (details: object, message: string) => logged.push(`${message} ${JSON.stringify(details)}`);
  const noteAndHandle = async (delivery: Delivery, context: DeliveryContext) => {
    handed.push(delivery);
    await handle?.(delivery, context);
  };
  const defaults = {
    name: "test",
    signal: controller.signal,
    logger: { info: log, warn: log },
    observe: (event: DeliveryEvent) => events.push(event),
    retry: shortPauses,
  };
  const ended = deliver({ ...defaults, handle: noteAndHandle, ...others } as DeliverOptions);
  ended.catch(() => {});
  const stop = () => {
    controller.abort();
    return ended;
  };
  return { handed, ids: () => handed.map(({ change }) => change.id), events, logged, stop, ended };
}
