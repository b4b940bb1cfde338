import { recordHanded } from "../handed.ts";
import { changedFields } from "./changed-fields.ts";
import type { DeliveryFilter } from "./consumer-options.ts";
import { type Decision, decide } from "./decide.ts";
import type { Delivery } from "./delivery.ts";
import type { Handed } from "./filter.ts";
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

export interface FoundDelivery {
  found: Found;
  /** The feed has no change of the booking any more. */
  hasLeftFeed: boolean;
  /** By `performance.now()`. Then it must be read again. */
  staleAtMs: number;
}

export interface LookedUp extends FoundDelivery {
  decision: Decision;
}

export type Handing = Extract<Decision, { kind: "hand" }>;

/**
 * Reads what a booking holds whose turn has come, and decides what to do with it. That the consumer is about to know the
 * booking is remembered.
 */
export async function lookUpDelivery(host: Host, addressee: Addressee, sought: Sought): Promise<LookedUp> {
  const found = await findDelivery(host, addressee, sought);
  const decision = decide({ ...addressee, ...sought }, found.found);
  if (decision.kind === "hand" && decision.handed !== null && !leavesFilter(found, decision))
    await remember(host, addressee, new Map([[sought.bookingId, decision.handed]]));
  return { ...found, decision };
}

/** This is remembered only once the consumer has been told, since nobody knows before whether the attempt succeeds. */
export function leavesFilter({ found }: FoundDelivery, { handed }: Handing): boolean {
  return found.handed === "inside" && handed === "outside";
}

export function remember(
  { read, tables }: Host,
  addressee: Pick<Addressee, "name" | "token">,
  bookings: ReadonlyMap<string, Handed>,
): Promise<void> {
  return read((client) => recordHanded(client, tables, addressee, bookings));
}

/** Reads what a booking holds whose turn has come. */
export async function findDelivery(
  { find, read, tables }: Host,
  { name, token, isLatest, mayWait }: Omit<Addressee, "filter">,
  { bookingId, changeId, place }: Omit<Sought, "isRetry">,
): Promise<FoundDelivery> {
  const staleAtMs = performance.now() + freshMs;
  const found = await find({ name, token, bookingId, changeId, isLatest }, { mayWait });
  const hasLeftFeed = found.change === null;
  if (hasLeftFeed && found.isHeld)
    found.change = await read((client) => readBooking(client, tables, { bookingId, asId: changeId ?? place }));
  return { found, hasLeftFeed, staleAtMs };
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
