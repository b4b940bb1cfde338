import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createLogger } from "@booking-events/runtime";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import { type DigestKey, maintain, openDigestKey, readDatabaseIdentity, testRetention } from "@booking-events/store";
import type pg from "pg";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { Transactions } from "../batches/transactions.ts";
import { OutageGate } from "../outages/wait-out-outage.ts";
import { applyEvents } from "./apply-events.ts";

const { pool, testPool } = useTestDatabase();
const mode = { isAlone: false, waitsForLocks: true };
const dayMs = 86_400_000;

let digestKey: DigestKey;
let database: string;
beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
  database = (await readDatabaseIdentity(pool)).id;
});
beforeEach(async () => {
  for (const each of [pool, testPool])
    await each.query("truncate bookings, booking_events, booking_changes; update feed_position set last_id = 0");
  warned.length = 0;
});

const warned: string[] = [];

function transactions(apply = applyEvents): Transactions {
  return new Transactions({
    pool,
    testPool,
    outageGate: new OutageGate({ probe: async () => {}, onChange() {}, signal: new AbortController().signal }),
    applyEvents: apply,
    digestKey: () => digestKey,
    database: () => database,
    duplicateWindowMs: dayMs,
    metrics: { countWarning: (code) => void warned.push(code) },
    tracing: undefined,
    logger: createLogger({ name: "test", level: "silent" }),
  });
}

/** The numbers are the order of receipt. */
function event(number: number, kind: EventKind, name: string, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const payload = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: name };
  return sampleEvent(number, { kind, payload, ...more });
}
const ofTest = (...args: Parameters<typeof event>) => event(args[0], args[1], args[2], { test: true, ...args[3] });

async function read(from: pg.Pool) {
  const { rows: bookings } = await from.query<{ reference: string; state: string; name: string }>(
    "select reference, state, payload ->> 'consumerGivenName' as name, revision from bookings order by reference",
  );
  const { rows: changes } = await from.query<{ change: string }>("select change from booking_changes order by id");
  return { bookings, changes: changes.map(({ change }) => change) };
}

test("a test partner's events go the whole way in one batch with others of the same reference, and neither meets the other", async () => {
  const batch = [
    event(1, "create", "Real"),
    ofTest(2, "create", "Test"),
    // By the repetition rules, a retry of its own create, and nothing to the other's.
    ofTest(3, "create", "Test"),
    event(5, "update", "Real, changed"),
    ofTest(6, "delete", "Test"),
    // Comes late.
    ofTest(4, "update", "Test, changed"),
  ];
  const outcomes = await transactions().applyTogether(batch, mode);
  expect(batch.map(({ eventId }) => outcomes.get(eventId))).toEqual([
    ...["created", "created", "unchanged", "updated", "deleted", "updated"],
  ]);
  expect(await read(pool)).toEqual({
    bookings: [{ reference: "TRIP-1", state: "active", name: "Real, changed", revision: 2 }],
    changes: ["created", "updated"],
  });
  expect(await read(testPool)).toMatchObject({
    bookings: [{ state: "deleted" }],
    changes: ["created", "updated", "deleted"],
  });
  // A delete of what only the others have finds nothing, and no metric counts what the sender should know.
  await transactions().applyTogether(
    [ofTest(7, "delete", "", { payload: { consumerTripPartnerExternalReference: "NEW" } })],
    mode,
  );
  expect(warned).toEqual([]);
});

test("what was applied before the worker died before the other transaction is not applied again", async () => {
  const dies: typeof applyEvents = async (into, ...rest) => {
    if (into === testPool) throw new Error("killed");
    return applyEvents(into, ...rest);
  };
  const batch = [event(1, "create", "Real"), ofTest(2, "create", "Test")];
  await expect(transactions(dies).applyTogether(batch, mode)).rejects.toThrow("killed");
  expect(await read(testPool)).toEqual({ bookings: [], changes: [] });
  const outcomes = await transactions().applyTogether(batch, mode);
  expect([...outcomes.values()]).toEqual(["created", "created"]);
  for (const each of [pool, testPool])
    expect(await read(each)).toMatchObject({ bookings: [{ revision: 1 }], changes: ["created"] });
});

test("seven days after its newest event, nothing is left of a test partner's booking; real ones stay", async () => {
  const ago = (days: number) => ({ sequence: (Date.now() - days * dayMs) * 1_000 });
  // Of a month ago, too, which has another partition or none.
  const ages = [40, 8, 6];
  const all = ages.flatMap((days, index) => {
    const reference = { consumerTripPartnerExternalReference: `AGE-${days}` };
    const id = (number: number) => idAt(Date.now() - days * dayMs, number);
    return [
      event(1, "create", "", { ...ago(days), eventId: id(2 * index), payload: reference }),
      ofTest(1, "create", "", { ...ago(days), eventId: id(2 * index + 1), payload: reference }),
    ];
  });
  // This one is in use, and loses its old events only.
  const living = { payload: { consumerTripPartnerExternalReference: "LIVING" } };
  all.push(ofTest(1, "create", "", { ...living, ...ago(9), eventId: idAt(Date.now() - 9 * dayMs, 90) }));
  all.push(ofTest(1, "delete", "", { ...living, ...ago(1), eventId: idAt(Date.now() - dayMs, 91) }));
  await transactions().applyTogether(all, mode);
  await testPool.query("update booking_changes set changed_at = now() - interval '8 days' where reference = 'AGE-8'");
  await testPool.query(
    `insert into dead_letters (event_id, error_code, error, attempts, envelope, failed_at)
     select gen_random_uuid(), 'X', 'x', 1, '', now() - days * interval '1 day' from unnest(array[8, 6]) as days`,
  );
  const done = await maintain(testPool, testRetention, { findClockProblem: async () => null });
  expect(done).toMatchObject({ problems: [], removed: { bookings: 2, booking_events: 3, dead_letters: 1 } });
  expect((await read(testPool)).bookings.map(({ reference }) => reference)).toEqual(["AGE-6", "LIVING"]);
  expect((await testPool.query("select from booking_events")).rowCount).toBe(2);
  expect((await read(pool)).bookings).toHaveLength(3);
  expect((await pool.query("select from booking_events")).rowCount).toBe(3);
  // An event that has waited so long is too old to be applied.
  const late = ofTest(1, "create", "", { ...ago(7.1), eventId: idAt(Date.now() - 7.1 * dayMs, 92) });
  expect([...(await transactions().applyTogether([late], mode)).values()]).toEqual(["expired"]);
  await expect(pool.query("select delete_test_data(now(), 1)")).rejects.toThrow("the schema public has real bookings");
});

function idAt(timeMs: number, number: number): string {
  const hex = Math.floor(timeMs).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`;
}
