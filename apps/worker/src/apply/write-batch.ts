import {
  appendChanges,
  insertBookings,
  insertEvents,
  markDuplicates,
  markReferenceKind,
  markReusing,
  type Queryable,
  RollBack,
  reviseEvents,
  settleAll,
  updateBookings,
} from "@booking-events/store";
import type { BatchPlan } from "./plan-batch.ts";

/** Another transaction inserted one of the events or bookings first. Nothing was written; the next try finds it. */
export class Race extends RollBack {
  override name = "Race";
}

/**
 * All statements are sent at once, in this order. The events come first: bookings get their payloads from them, and if
 * another transaction is applying the same event to a booking that is new to both, this is where they meet. The feed
 * comes last, since it lets one transaction through at a time.
 *
 * @returns the ids of deletes that may have been meant for other bookings
 * @throws Race
 */
export async function writeBatch(client: Queryable, plan: BatchPlan): Promise<Set<string>> {
  const [, , , , , , misdirected] = await settleAll([
    ifAny(plan.events, (events) => orRace(insertEvents(client, events))),
    ifAny(plan.revised, (events) => reviseEvents(client, events)),
    ifAny(plan.displaced, (events) => markDuplicates(client, events)),
    ifAny(plan.reusingInLog, (ids) => markReusing(client, ids)),
    ifAny(plan.newBookings, (bookings) => orRace(insertBookings(client, bookings))),
    ifAny(plan.changedBookings, (bookings) => updateBookings(client, bookings)),
    ifAny(plan.consumerDeletes, (events) =>
      markReferenceKind(
        client,
        events.map(({ id }) => id),
      ),
    ),
    ifAny(plan.changes, (changes) => appendChanges(client, changes)),
  ]);
  return new Set(misdirected);
}

/** No statement, if there is nothing to write. */
async function ifAny<Item, Result>(
  items: Item[],
  write: (items: Item[]) => Promise<Result>,
): Promise<Result | undefined> {
  return items.length === 0 ? undefined : write(items);
}

async function orRace(isFirst: Promise<boolean>): Promise<void> {
  if (!(await isFirst)) throw new Race();
}
