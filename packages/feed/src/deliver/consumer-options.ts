import type { FeedChange } from "@booking-events/store";
import type { Delivery, DeliveryContext } from "./delivery.ts";

/** Which bookings a consumer begins to hear of. One that it was ever handed is also deleted and erased. */
export interface DeliveryFilter {
  partners?: string[];
  changes?: FeedChange[];
  /** Destinations, as ISO 3166-1 alpha-2 codes such as `ES`. */
  countries?: string[];
  /** The day of arrival, in days after the day (in UTC) of the change. */
  arrival?: { fromDays: number; toDays: number };
}

/** The pause doubles with each failed attempt, and is up to a fifth shorter by chance. */
export interface RetryPolicy {
  firstPauseMs: number;
  longestPauseMs: number;
  /** The attempts end when their pauses come to this. */
  giveUpAfterMs: number;
}

export interface CommonOptions {
  /** The name in `feed_readers`: 1 to 100 letters, digits, dots, - and _. One process at a time delivers under it. */
  name: string;
  /**
   * `latest` (default): if the consumer has failed or is behind, it is handed the newest state of a booking only.
   * `every`: each change, in the order of ids.
   */
  mode?: "latest" | "every";
  /**
   * Where to begin if the name is new or has been reset: at the oldest change that is kept (default), after the newest,
   * after the given one, or with all bookings as they are. `orOldest`: if changes after the given one were removed before
   * a reset, at the oldest that is kept. Otherwise there is a `FeedGapError`.
   */
  from?: "beginning" | "now" | "snapshot" | { after: number; orOldest?: boolean };
  filter?: DeliveryFilter;
  /** How long an attempt may take. Default: 60,000 ms. */
  timeoutMs?: number;
}

export interface SingleOptions extends CommonOptions {
  /** Gets one delivery. Those of one booking come one after the other, in the order of their ids. */
  handle: (delivery: Delivery, context: DeliveryContext) => Promise<void>;
  /** How many bookings are handled at a time. Default: 8. */
  concurrency?: number;
  /** Default: from 5 s to 4 h, over 3 days. */
  retry?: Partial<RetryPolicy>;
}

export interface BatchOptions extends CommonOptions {
  /** Gets deliveries in the order of their ids, all or nothing. After a failure, they come again after growing pauses. */
  handleBatch: (deliveries: Delivery[], context: DeliveryContext) => Promise<void>;
  /** At most 1,000. Default: 100. */
  batchSize?: number;
}

export type ConsumerOptions = SingleOptions | BatchOptions;

export type SingleConsumer = Required<Omit<SingleOptions, "retry">> & { retry: RetryPolicy };
export type BatchConsumer = Required<BatchOptions>;
