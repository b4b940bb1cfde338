import type { Queryable } from "@booking-events/store";
import type { BookingChange } from "../read-changes.ts";

/** One change of a booking, handed to one consumer. */
export interface Delivery {
  change: BookingChange;
  /** `NAME-CHANGE_ID`: the same in each attempt, and in no other delivery. */
  key: string;
  /** From 1. */
  attempt: number;
  /**
   * The names of the top-level fields whose values differ from those before the change; of the first content, all; of a
   * deletion, all that the booking had. Null: earlier changes were not handed over, or a content is gone, so compare with
   * what you keep.
   */
  changedFields: string[] | null;
  /** Earlier changes of the booking may not have been handed over by themselves: this one stands for them. */
  standsForEarlier: boolean;
}

export interface DeliveryContext {
  /**
   * Its first query takes a connection and begins the transaction in which the delivery is recorded too. So what you
   * write with it counts once. Don't commit it or roll it back.
   */
  client: Queryable;
  /** Aborts when the attempt has taken too long, another process has taken over, or this one stops. */
  signal: AbortSignal;
}
