import { type Delivery, type DeliveryContext, RetryAfter, StopDelivering } from "@booking-events/feed";
import { type Subscriber, toEvent } from "@booking-events/subscribers";

/**
 * Posts one change to a subscriber.
 *
 * @throws RetryAfter | StopDelivering as the subscriber asks; PostFailed; the signal's reason if it aborts
 */
export async function postDelivery(
  subscriber: Pick<Subscriber, "post">,
  { change, changedFields, key }: Delivery,
  { payload, signal }: Pick<DeliveryContext, "signal"> & { payload: "thin" | "full" },
): Promise<void> {
  const body = JSON.stringify(toEvent(change, { payload, changedFields }));
  const outcome = await subscriber.post({ id: key, body, signal });
  switch (outcome.kind) {
    case "done":
      return;
    case "wait":
      throw new RetryAfter(outcome.pauseMs);
    case "gone":
      throw new StopDelivering("The subscriber answered 410: it wants no more.");
    case "failed":
      throw new PostFailed(outcome.failure);
  }
}

export class PostFailed extends Error {
  override name = "PostFailed";
  /** The class of the failure, such as `http-500` or `timeout`. */
  readonly code: string;

  constructor(code: string) {
    super(`The post failed: ${code}`);
    this.code = code;
  }
}
