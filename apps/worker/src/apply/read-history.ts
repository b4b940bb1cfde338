import {
  type CreatesAround,
  findLateEvents,
  isRepeatable,
  type KeyUses,
  Refold,
  type Refolding,
} from "@booking-events/bookings";
import {
  findCreatesAround,
  findKeyUses,
  firstIdInPeriod,
  type Queryable,
  RollBack,
  settleAll,
} from "@booking-events/store";
import { type IncomingEvent, nameBooking } from "./incoming-event.ts";
import type { BookingWork, TouchedBooking } from "./plan-batch.ts";
import { LogReader, refoldBooking, TooMuchHistory } from "./refold-booking.ts";

/** What a batch needs from the log. New bookings have no log. */
export interface History {
  /** How the log has used each event's idempotency key, by the event's id. */
  uses: Map<string, KeyUses>;
  /** The creates around each repeatable event, by its id. */
  creates: Map<string, CreatesAround>;
}

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

export async function readHistory(
  client: Queryable,
  bookings: readonly TouchedBooking[],
  { duplicateWindowMs }: { duplicateWindowMs: number },
): Promise<History> {
  const known = bookings.flatMap(({ stored, newEvents, firstId }) =>
    stored === null ? [] : newEvents.map((event) => ({ ...event, firstId })),
  );
  const keyed = known.filter(({ hasIdempotencyKey }) => hasIdempotencyKey);
  const repeatable = known.filter(isRepeatable).map((event) => ({
    ...event,
    firstId: laterId(event.firstId, firstIdInPeriod(event, duplicateWindowMs)),
  }));
  const [uses, creates] = await settleAll([
    keyed.length === 0 ? Promise.resolve([]) : findKeyUses(client, keyed),
    repeatable.length === 0 ? Promise.resolve([]) : findCreatesAround(client, repeatable),
  ]);
  return { uses: byId(keyed, uses), creates: byId(repeatable, creates) };
}

function laterId(one: string, other: string): string {
  return one > other ? one : other;
}

function byId<Found>(events: IncomingEvent[], found: Found[]): Map<string, Found> {
  return new Map(events.map(({ id }, index) => [id, found[index] as Found]));
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
