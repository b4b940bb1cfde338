import type { ConsumerOptions } from "./consumer-options.ts";
import { Deliverer, type DelivererOptions } from "./deliverer.ts";

export type DeliverOptions = ConsumerOptions & DelivererOptions & { signal: AbortSignal };

/**
 * Hands each change of the feed to your handler: of one booking in order, of several beside each other. A booking whose
 * handler fails waits alone, and is tried again after growing pauses. It never gives up on PostgreSQL.
 *
 * @returns less than 10 s after the signal has aborted
 * @throws StopDelivering what your handler has thrown; FeedGapError when changes are missing; ForeignReaderError when the
 *   name belongs to another role; TypeError when options are wrong
 */
export async function deliver({ signal, ...options }: DeliverOptions): Promise<void> {
  const ending = new AbortController();
  let failure: Error | undefined;
  const concurrency = "handle" in options ? (options.concurrency ?? 8) : 1;
  const deliverer = new Deliverer({ maxConnections: concurrency, ...options });
  const onStopped = (error: Error) => {
    failure = error;
    ending.abort();
  };
  deliverer.add({ ...options, onStopped });
  await deliverer.run(AbortSignal.any([signal, ending.signal]));
  if (failure !== undefined) throw failure;
}
