import type { Outcome } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import { firstIdAt, timeOfId } from "../tables/event-ids.ts";

/** A time in which events were received. */
export interface PaceWindow {
  from: Date;
  until: Date;
}

export interface Pace {
  /** How many events were received in the window: an estimate by its first ones, if there are many. */
  events: number;
  /** Which share of them had warnings, as far as was looked. 0: there was no event. */
  warnedShare: number;
  /** How many of those that were looked at had each outcome. */
  outcomes: Partial<Record<Outcome, number>>;
  /** Only the first events were looked at. */
  isEstimate: boolean;
}

const inWindow = "id >= $5 and id >= first_id and id < end_id order by id";

/**
 * Compared like this, only the index by partner has the order. By the primary key, the events of a partner that sends
 * little would be looked for among those of all.
 */
const inWindowOfPartner = `id >= $5 and (partner, id) >= (of_partner, first_id) and (partner, id) < (of_partner, end_id)
       order by partner, id`;

/**
 * Reads how many events were received in each window. It looks at the first events of each, which an index finds, so the
 * cost does not depend on how many there are.
 *
 * @param options.partners one for each window. Undefined: events of all partners count
 * @param options.looked how many events of each window are looked at
 * @returns in the order of the windows
 */
export async function readPaces(
  client: Queryable,
  windows: PaceWindow[],
  { partners, looked }: { partners?: string[]; looked: number },
): Promise<Pace[]> {
  if (windows.length === 0) return [];
  const { rows } = await client.query<{ slot: number; outcome: Outcome; events: number; warned: number; last: string }>(
    `select slot::int, outcome, count(*)::int as events, count(*) filter (where warnings <> '{}')::int as warned,
       max(id::text collate "C") as last
     from unnest($1::uuid[], $2::uuid[], $4::text[]) with ordinality as slots (first_id, end_id, of_partner, slot)
     cross join lateral (
       select id, outcome, warnings from booking_events where ${partners === undefined ? inWindow : inWindowOfPartner} limit $3
     ) as sample
     group by slot, outcome`,
    [
      windows.map(({ from }) => firstIdAt(from)),
      windows.map(({ until }) => firstIdAt(until)),
      looked,
      partners ?? windows.map(() => null),
      firstIdAt(new Date(Math.min(...windows.map(({ from }) => from.getTime())))),
    ],
  );
  const found = Map.groupBy(rows, ({ slot }) => slot);
  return windows.map((window, index) => toPace(window, found.get(index + 1) ?? [], looked));
}

function toPace(
  { from, until }: PaceWindow,
  rows: { outcome: Outcome; events: number; warned: number; last: string }[],
  looked: number,
): Pace {
  const events = rows.reduce((sum, row) => sum + row.events, 0);
  if (events === 0) return { events, warnedShare: 0, outcomes: {}, isEstimate: false };
  const warned = rows.reduce((sum, row) => sum + row.warned, 0);
  const lookedMs = Math.max(1, ...rows.map(({ last }) => timeOfId(last) - from.getTime()));
  const windowMs = until.getTime() - from.getTime();
  const isEstimate = events >= looked;
  return {
    events: isEstimate ? Math.round((events * windowMs) / lookedMs) : events,
    warnedShare: warned / events,
    outcomes: Object.fromEntries(rows.map((row) => [row.outcome, row.events])),
    isEstimate,
  };
}
