import { recordHanded } from "../handed.ts";
import { changedFields } from "./changed-fields.ts";
import type { DeliveryFilter } from "./consumer-options.ts";
import { type Decision, decide } from "./decide.ts";
import type { Delivery } from "./delivery.ts";
import type { Host } from "./host.ts";
import { readBooking } from "./read-booking.ts";
import type { Found } from "./read-deliveries.ts";

/** What was read may be handed over for so long: a guest may have been erased since. */
export const freshMs = 1_000;

export interface Addressee {
  name: string;
  /** Of its lease. */
  token: string;
  filter: DeliveryFilter;
  isLatest: boolean;
  /** It has other attempts under way: see `Finder`. */
  mayWait: boolean;
}

export interface Sought {
  bookingId: string;
  /** Null: whatever the booking holds, for a snapshot. */
  changeId: number | null;
  /** It waited for its turn in feed_deliveries. */
  isRetry: boolean;
  /** The id of what is handed over if the feed has no change of the booking any more, and it names none. */
  place: number;
}

export interface LookedUp {
  found: Found;
  decision: Decision;
  /** The feed has no change of the booking any more. */
  hasLeftFeed: boolean;
  /** By `performance.now()`. Then it must be read again. */
  staleAtMs: number;
}

export type Handing = Extract<Decision, { kind: "hand" }>;

/**
 * Reads what a booking holds whose turn has come, and decides what to do with it. That the consumer is about to know the
 * booking is remembered.
 */
export async function lookUpDelivery(
  { find, read, tables }: Host,
  { name, token, filter, isLatest, mayWait }: Addressee,
  { bookingId, changeId, isRetry, place }: Sought,
): Promise<LookedUp> {
  const staleAtMs = performance.now() + freshMs;
  const found = await find({ name, token, bookingId, changeId, isLatest }, { mayWait });
  const hasLeftFeed = found.change === null;
  if (hasLeftFeed && found.isHeld)
    found.change = await read((client) => readBooking(client, tables, { bookingId, asId: changeId ?? place }));
  const decision = decide({ changeId, isRetry, filter, isLatest }, found);
  if (decision.kind === "hand" && decision.handed !== null) {
    const isInside = decision.handed === "inside";
    await read((client) => recordHanded(client, tables, { name, token, bookingId, isInside }));
  }
  return { found, decision, hasLeftFeed, staleAtMs };
}

/** @param wanted.standsForEarlier earlier changes were skipped, or may have been */
export function toDelivery(
  name: string,
  wanted: { changeId: number | null; standsForEarlier: boolean },
  { change, attempt, sinceId, hasLeftFeed }: Pick<Handing, "change" | "attempt" | "sinceId"> & { hasLeftFeed: boolean },
): Delivery {
  const isOther = change.id !== wanted.changeId;
  const standsForEarlier = wanted.standsForEarlier || isOther || hasLeftFeed || sinceId !== null;
  return {
    change,
    // The id of what has left the feed is not its own.
    key: `${name}-${hasLeftFeed ? `${change.bookingId}-${change.revision}` : change.id}`,
    attempt,
    changedFields: standsForEarlier ? null : changedFields(change),
    standsForEarlier,
  };
}
