import { type CreatesAround, isRepeatable, type KeyUses } from "@booking-events/bookings";
import { findCreatesAround, findKeyUses, firstIdInPeriod, type Queryable, settleAll } from "@booking-events/store";
import type { IncomingEvent } from "./incoming-event.ts";
import type { TouchedBooking } from "./plan-batch.ts";

/** What a batch needs from the log. New bookings have no log. */
export interface History {
  /** How the log has used each event's idempotency key, by the event's id. */
  uses: Map<string, KeyUses>;
  /** The creates around each repeatable event, by its id. */
  creates: Map<string, CreatesAround>;
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
