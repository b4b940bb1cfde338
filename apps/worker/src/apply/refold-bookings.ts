import { findLateEvents, Refold, type Refolding } from "@booking-events/bookings";
import { type Queryable, RollBack } from "@booking-events/store";
import { nameBooking } from "./incoming-event.ts";
import type { BookingWork } from "./plan-batch.ts";
import type { History } from "./read-history.ts";
import { LogReader, refoldBooking, TooMuchHistory } from "./refold-booking.ts";

/** Some bookings must be applied alone. Nothing was written. The other bookings are tried again without them. */
export class LeftOut extends RollBack {
  override name = "LeftOut";
  /** By {@link nameBooking}. */
  readonly bookings: ReadonlySet<string>;

  constructor(bookings: BookingWork[]) {
    super("Some bookings must be applied alone.");
    this.bookings = new Set(bookings.map(nameBooking));
  }
}

/**
 * Refolds all bookings with late events concurrently. The pages that they read in one turn of the event loop share a
 * query.
 *
 * @param options.isAlone no other bookings wait, so there is no limit to what is read
 * @throws LeftOut
 */
export async function refoldBookings(
  client: Queryable,
  works: readonly BookingWork[],
  creates: History["creates"],
  { duplicateWindowMs, isAlone = false }: { duplicateWindowMs: number; isAlone?: boolean | undefined },
): Promise<Map<BookingWork, Refolding>> {
  const late = works.flatMap((work) => {
    const { stored, events } = work;
    const lateEvents = findLateEvents(stored, events);
    return stored === null || lateEvents.length === 0 ? [] : [{ work, stored, lateEvents }];
  });
  const logs = new LogReader(client, { isAlone });
  const refoldings = await Promise.allSettled(
    late.map(({ work, stored, lateEvents }) => {
      const refold = new Refold({
        stored,
        late: lateEvents.map((event) => ({ event, creates: creates.get(event.id) })),
        displaced: work.repeats.displaced,
        duplicateWindowMs,
      });
      return refoldBooking(client, logs, work, refold);
    }),
  );
  const tooLong = late.filter((_, index) => isTooLong(refoldings[index]));
  if (tooLong.length > 0) throw new LeftOut(tooLong.map(({ work }) => work));
  return new Map(late.map(({ work }, index) => [work, resultOf(refoldings[index] as PromiseSettledResult<Refolding>)]));
}

function isTooLong(refolding: PromiseSettledResult<unknown> | undefined): boolean {
  return refolding?.status === "rejected" && refolding.reason instanceof TooMuchHistory;
}

function resultOf<Value>(settled: PromiseSettledResult<Value>): Value {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}
