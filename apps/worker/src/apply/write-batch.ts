import {
  appendChanges,
  type DigestKey,
  findErased,
  insertBookings,
  insertEvents,
  markDuplicates,
  markReferenceKind,
  markReusing,
  type Queryable,
  RollBack,
  readLogged,
  reviseEvents,
  settleAll,
  updateBookings,
} from "@booking-events/store";
import type { BatchPlan } from "./plan-batch.ts";

/**
 * Another transaction inserted one of the events or bookings first, or erased one of the bookings. Nothing was written.
 * The next try finds that.
 */
export class Race extends RollBack {
  override name = "Race";
}

/**
 * Writes the plan. Contents that only the log has are read first; then all statements are sent together, in this order.
 * The events are first, because bookings get their payloads from them. Two transactions that apply the same event to a
 * booking that is new to both also wait for each other there. The feed is last, since only one transaction at a time can
 * append to it.
 *
 * @returns the ids of deletes whose sender may have meant other bookings
 * @throws Race
 */
export async function writeBatch(client: Queryable, plan: BatchPlan, digestKey: DigestKey): Promise<Set<string>> {
  const newBookings = await readLogged(client, plan.newBookings);
  const changedBookings = await readLogged(client, plan.changedBookings);
  const [, , , , , , , misdirected] = await settleAll([
    ifAny(plan.events, (events) => orRace(insertEvents(client, events))),
    ifAny(plan.revised, (events) => reviseEvents(client, events)),
    ifAny(plan.displaced, (events) => markDuplicates(client, events)),
    ifAny(plan.reusingInLog, (ids) => markReusing(client, ids)),
    ifAny(newBookings, (bookings) => orRace(insertBookings(client, bookings))),
    // After they have been inserted: an operator who erases one of them now waits for this transaction.
    ifAny(newBookings, (bookings) => orRace(areNotErased(client, digestKey, bookings))),
    ifAny(changedBookings, (bookings) => updateBookings(client, bookings)),
    ifAny(plan.consumerDeletes, (events) => markReferenceKind(client, events)),
    ifAny(plan.changes, (changes) => appendChanges(client, changes)),
  ]);
  return new Set(misdirected);
}

async function areNotErased(client: Queryable, key: DigestKey, bookings: { bookingKey: Buffer }[]): Promise<boolean> {
  const bookingKeys = bookings.map(({ bookingKey }) => bookingKey);
  return (await findErased(client, key, bookingKeys)).size === 0;
}

/** Sends no statement if there is nothing to write. */
async function ifAny<Item, Result>(
  items: Item[],
  write: (items: Item[]) => Promise<Result>,
): Promise<Result | undefined> {
  return items.length === 0 ? undefined : write(items);
}

async function orRace(isFirst: Promise<boolean>): Promise<void> {
  if (!(await isFirst)) throw new Race();
}
