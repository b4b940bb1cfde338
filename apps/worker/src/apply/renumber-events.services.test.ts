import { readFile } from "node:fs/promises";
import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { EventKind } from "@booking-events/schema";
import type pg from "pg";
import { expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";

const renumberEvents = await readFile(new URL("../../../../deploy/renumber-events.sql", import.meta.url), "utf8");
const yearUs = 365 * 24 * 3_600 * 1_000_000;
const nowUs = Date.now() * 1_000;

const { pool, testPool } = useTestDatabase({ maxConnections: 2 });

async function apply(number: number, kind: EventKind, content: string, sequence: number): Promise<string | undefined> {
  return applyTo({ reference: "TRIP-1" }, number, kind, content, sequence);
}

async function applyTo(
  { reference, at = pool }: { reference: string; at?: pg.Pool },
  ...[number, kind, content, sequence]: Parameters<typeof apply>
): Promise<string | undefined> {
  const payload = { consumerTripPartnerExternalReference: reference, note: content };
  const event = sampleEvent(number, { kind, sequence, payload });
  return (await applyEvents(at, [event], { duplicateWindowMs: 72 * 3_600_000 })).get(event.eventId);
}

/** Returns the largest sequence in any column. */
async function findLatestPlace(): Promise<number> {
  const { rows } = await pool.query(
    `select greatest(
       (select max(greatest(sequence, newest_keyless_sequence)) from booking_events),
       (select max(greatest(sequence, last_sequence, newest_keyless_sequence)) from bookings),
       (select max(sequence) from booking_changes)
     ) as latest`,
  );
  return rows[0].latest;
}

test("events from the future get the last sequences before now, in order, and new events count again", async () => {
  await apply(1, "create", "A", nowUs - 60_000_000);
  await apply(2, "update", "B", nowUs + yearUs);
  await apply(3, "update", "B", nowUs + yearUs + 1);
  await apply(4, "create", "C", nowUs + 2 * yearUs);
  await apply(5, "delete", "", nowUs + 3 * yearUs);
  expect(await apply(6, "update", "D", nowUs)).toBe("superseded");
  // Each shard numbers its own events.
  await applyTo({ reference: "TRIP-2" }, 12, "create", "X", nowUs + yearUs);
  await applyTo({ reference: "TRIP-3" }, 13, "create", "X", nowUs + yearUs);
  await applyTo({ reference: "TRIP-1", at: testPool }, 14, "create", "X", nowUs + yearUs);

  await pool.query(renumberEvents);

  const { rows: log } = await pool.query("select id, sequence from booking_events order by sequence");
  expect(log.map(({ id }) => Number(id.slice(-4)))).toEqual([1, 6, 2, 12, 13, 3, 4, 5]);
  for (const each of [pool, testPool])
    for (const { sequence, ...ofBooking } of await readOwnPlaces(each))
      expect(ofBooking).toEqual({ last: sequence, keyless: sequence, logged: sequence });
  expect(await findLatestPlace()).toBeLessThan(Date.now() * 1_000 + 1_000);
  // An earlier event is folded in, until the fold comes to the stored state.
  expect(await apply(7, "update", "E", nowUs - 30_000_000)).toBe("superseded");
  expect(await apply(8, "update", "C", (Date.now() + 1_000) * 1_000)).toBe("duplicate");
  expect(await apply(9, "update", "F", (Date.now() + 2_000) * 1_000)).toBe("recreated");
  const { rows: changes } = await pool.query(
    "select change, sequence from booking_changes where reference = 'TRIP-1' order by id",
  );
  expect(changes.map(({ change }) => change)).toEqual(["created", "updated", "updated", "deleted", "recreated"]);
  expect(changes.map(({ sequence }) => sequence)).toEqual(changes.map(({ sequence }) => sequence).toSorted());
});

/** Of bookings with one event, what holds its place. */
async function readOwnPlaces(at: pg.Pool) {
  const { rows } = await at.query<{ sequence: number; last: number; keyless: number; logged: number }>(
    `select event.sequence, last_sequence as last, bookings.newest_keyless_sequence as keyless,
       event.newest_keyless_sequence as logged
     from bookings join booking_events as event on event.id = event_id
     where revision = 1 and event.sequence < (extract(epoch from now()) * 1000000)::bigint + 1000`,
  );
  expect(rows).toHaveLength(at === pool ? 2 : 1);
  return rows;
}

test("a second run changes nothing", async () => {
  const before = await pool.query("select * from bookings, booking_events order by id");
  await pool.query(renumberEvents);
  expect((await pool.query("select * from bookings, booking_events order by id")).rows).toEqual(before.rows);
});

test("prints the command for Redis: set the last sequence of the log, or delete it if the log is empty", async () => {
  const last = await findLatestPlace();
  expect(await findCommand()).toBe(`SET '{booking-events}:sequence' ${last}`);
  for (const each of [pool, testPool]) await each.query("truncate bookings, booking_events, booking_changes");
  expect(await findCommand()).toBe("DEL '{booking-events}:sequence'");
});

async function findCommand(): Promise<unknown> {
  const results = (await pool.query(renumberEvents)) as unknown as { rows: Record<string, unknown>[] }[];
  return results.at(-1)?.rows[0]?.["for redis-cli"];
}
