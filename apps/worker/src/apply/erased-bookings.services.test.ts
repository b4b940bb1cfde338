import { waitFor } from "@booking-events/harness";
import { sampleEvent, sampleEventId } from "@booking-events/harness/sample-event";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import {
  type BookingToErase,
  beginErasure,
  createPool,
  type DigestKey,
  eraseBooking,
  findGuestBookings,
  type GuestSearch,
  inTransaction,
  maintain,
  openDigestKey,
  toGuestSearch,
} from "@booking-events/store";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";

const clocksAgree = { findClockProblem: async () => null };

const { pool, url } = useTestDatabase({ maxConnections: 6 });
const start = Date.UTC(2026, 10, 20) * 1_000;
const email = "Ada.Canary@example.com";
const keepAll = { retentionDays: 0, deletedRetentionDays: 0, deadLetterRetentionDays: 0 };
let digestKey: DigestKey;

beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
});
beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes, dead_letters, erasures"));

function event(number: number, kind: EventKind, more: Partial<EventEnvelope> = {}, fields = {}): EventEnvelope {
  const payload = { consumerTripPartnerExternalReference: "CANARY-1", consumerEmail: email, ...fields };
  return sampleEvent(number, { kind, payload, ...more });
}

async function apply(...events: EventEnvelope[]): Promise<string[]> {
  const outcomes = await applyEvents(pool, events, { digestKey, duplicateWindowMs: 72 * 3_600_000, isAlone: true });
  return events.map(({ eventId }) => outcomes.get(eventId) ?? "left out");
}

const booking: BookingToErase = {
  ...{ partner: "acme", referenceKind: "trip", reference: "CANARY-1" },
  event: { id: sampleEventId(1), sequence: start, receivedAt: new Date(start / 1_000) },
};

async function erase() {
  const erasureId = await beginErasure(pool, { by: "test", reason: "test", search: "email" });
  return eraseBooking(pool, digestKey, booking, { erasureId, by: "test" });
}

async function findByEmail(address = email): Promise<unknown[]> {
  return (await findGuestBookings(pool, digestKey, searchFor("email", address))).map(({ reference }) => reference);
}

function searchFor(by: "email" | "phone", value: string, partner?: string): GuestSearch {
  const search = toGuestSearch(by, value, partner);
  if (search === undefined) throw new Error(`Nothing to search for: ${value}`);
  return search;
}

test("a booking whose contacts change all the time stays small, and each of them finds it", async () => {
  const address = (number: number) => `guest-${number}@example.com`;
  const update = (number: number) => event(number, "update", {}, { consumerEmail: address(number) });
  const countHashes = async () =>
    (await pool.query("select cardinality(guest_hashes) as count from bookings")).rows[0].count;
  await apply(...Array.from({ length: 100 }, (_, number) => update(number)));
  expect(await countHashes()).toBe(100);
  await apply(update(100));
  await apply(...Array.from({ length: 100 }, (_, number) => update(101 + number)));
  await apply(update(1_000));
  expect(await countHashes()).toBe(1);
  for (const number of [0, 99, 100, 101, 1_000]) expect(await findByEmail(address(number))).toEqual(["CANARY-1"]);
  expect(await findByEmail(address(201))).toEqual([]);
});

test("a statement that reads much may take longer than others", async () => {
  const impatient = createPool({
    databaseUrl: url,
    applicationName: "impatient",
    maxConnections: 1,
    onError: () => {},
  });
  impatient.options.query_timeout = 100;
  await apply(event(1, "create"));
  // They wait for the tables, as they would be busy with reading large ones.
  async function whileLocked<Result>(table: string, work: () => Promise<Result>): Promise<Result> {
    const settled = await inTransaction(pool, async (client) => {
      await client.query(`lock table ${table}`);
      const working = Promise.allSettled([work()]);
      await waitFor(async () => {
        const waiting = `select from pg_stat_activity where application_name = 'impatient' and wait_event_type = 'Lock'
          and state_change < clock_timestamp() - interval '300 ms'`;
        expect((await pool.query(waiting)).rowCount).toBe(1);
      });
      return { working };
    });
    const [result] = await settled.working;
    if (result.status === "rejected") throw result.reason;
    return result.value;
  }
  const search = searchFor("email", email);
  const found = await whileLocked("bookings", () => findGuestBookings(impatient, digestKey, search));
  expect(found).toHaveLength(1);
  await impatient.end();
});

/** All of the tables that could hold something of the guest, as text. */
async function dump(): Promise<string> {
  const { rows } = await pool.query(
    `select (select json_agg(b) from bookings b)::text || (select json_agg(e) from booking_events e)::text
       || coalesce((select json_agg(c) from booking_changes c)::text, '') as dump`,
  );
  return rows[0].dump;
}

test("an erased booking leaves nothing of the guest, and readers of the feed get a change", async () => {
  await apply(event(1, "create", { idempotencyKey: "canary-key" }), event(2, "update", {}, { note: "canary" }));
  await apply(event(3, "create", { idempotencyKey: "canary-key" }));
  expect(await dump()).toMatch(/canary/i);
  expect(await erase()).toEqual({ bookings: 1, events: 3, deadLetters: 0 });
  expect(await dump()).not.toMatch(/canary/i);
  const { rows } = await pool.query(
    "select booking_id, reference, change, revision, event_id, previous_event_id from booking_changes order by id",
  );
  const same = { booking_id: rows[0].booking_id, reference: null };
  expect(rows).toMatchObject([
    { ...same, change: "created", event_id: sampleEventId(1) },
    { ...same, change: "updated", event_id: sampleEventId(2) },
    { ...same, change: "erased", revision: 3, event_id: sampleEventId(2), previous_event_id: sampleEventId(2) },
  ]);
  expect(await erase()).toEqual({ bookings: 0, events: 0, deadLetters: 0 });
});

test("readers of the feed are told of the event that they know, though a late one has decided the same since", async () => {
  await apply(event(1, "create"));
  await apply(event(3, "update", { idempotencyKey: "key" }, { note: "B" }));
  await apply(event(2, "update", { idempotencyKey: "key" }, { note: "B" }));
  const { rows: bookings } = await pool.query("select event_id from bookings");
  expect(bookings).toEqual([{ event_id: sampleEventId(2) }]);
  await erase();
  const { rows } = await pool.query("select change, event_id, previous_event_id from booking_changes order by id");
  expect(rows).toEqual([
    { change: "created", event_id: sampleEventId(1), previous_event_id: null },
    { change: "updated", event_id: sampleEventId(3), previous_event_id: sampleEventId(1) },
    { change: "erased", event_id: sampleEventId(2), previous_event_id: sampleEventId(3) },
  ]);
});

test("later events of an erased booking are recorded without their content, and change nothing", async () => {
  await apply(event(5, "create"));
  await erase();
  const before = await pool.query("select * from bookings");
  const other = event(9, "create", {}, { consumerTripPartnerExternalReference: "OTHER" });
  // A late one, a repetition, a later one, and one of another booking.
  const events = [event(1, "update"), event(5, "create"), event(8, "create", { idempotencyKey: "canary" }), other];
  expect(await apply(...events)).toEqual(["erased", "created", "erased", "created"]);
  expect(await apply(event(8, "create"))).toEqual(["erased"]);
  const after = await pool.query("select * from bookings where erased_at is not null");
  expect(after.rows).toEqual(before.rows);
  const { rows } = await pool.query("select * from booking_events where outcome = 'erased' order by sequence");
  const [{ booking_key, reference }] = before.rows;
  expect(rows).toHaveLength(2);
  for (const row of rows)
    expect(row).toMatchObject({ booking_key, reference, payload: null, content_digest: null, idempotency_key: null });
});

describe("a booking that is erased before it is stored", () => {
  test("does not come to life if a worker is about to insert it", async () => {
    const blocker = await pool.connect();
    try {
      await blocker.query("begin; lock table erasures in exclusive mode");
      // The row is there for the erasure only.
      const erasing = eraseBooking(pool, digestKey, booking, { erasureId: sampleEventId(1), by: "test" });
      await untilBlocked(pool, 1);
      const applying = apply(event(1, "create"));
      await untilBlocked(pool, 2);
      await blocker.query("rollback");
      await erasing;
      expect(await applying).toEqual(["erased"]);
      expect(await dump()).not.toMatch(/canary/i);
    } finally {
      blocker.release(true);
    }
  });

  test("is erased if a worker has inserted it meanwhile", async () => {
    const blocker = await pool.connect();
    try {
      await blocker.query("begin; select from feed_position for update");
      const applying = apply(event(1, "create"));
      await untilBlocked(pool, 1);
      const erasing = erase();
      await untilBlocked(pool, 2);
      await blocker.query("rollback");
      expect(await applying).toEqual(["created"]);
      expect(await erasing).toEqual({ bookings: 1, events: 1, deadLetters: 0 });
      expect(await dump()).not.toMatch(/canary/i);
    } finally {
      blocker.release(true);
    }
  });
});

describe("a guest", () => {
  test("is found by each address that an event has sent, whatever its case", async () => {
    await apply(event(1, "create", {}, { consumerEmail: "first@example.com" }), event(2, "update"));
    expect(await findByEmail()).toEqual(["CANARY-1"]);
    expect(await findByEmail("First@Example.com")).toEqual(["CANARY-1"]);
    const ofOther = searchFor("email", "first@example.com", "other");
    expect(await findGuestBookings(pool, digestKey, ofOther)).toEqual([]);
  });

  test("is not found by the hash alone", async () => {
    await apply(event(1, "create", {}, { consumerEmail: "other@example.com" }), event(2, "update"));
    await pool.query("update booking_events set payload = '{}'");
    await pool.query("update bookings set payload = '{}'");
    expect(await findByEmail()).toEqual([]);
  });
});

describe("PostgreSQL's counts", () => {
  // Of a database of its own: the counts of earlier tests may come late.
  const { pool } = useTestDatabase();

  test("an update that sends the same address touches no index", async () => {
    for (let number = 1; number <= 5; number += 1)
      await applyEvents(pool, [event(number, "update", {}, { note: number })], { duplicateWindowMs: 0 });
    await waitFor(async () => {
      const { rows } = await pool.query(
        "select n_tup_upd::int as updated, n_tup_hot_upd::int as hot from pg_stat_user_tables where relid = 'bookings'::regclass",
      );
      expect(rows).toEqual([{ updated: 4, hot: 4 }]);
    });
  });
});

test("the content of a booking that was deleted long ago goes with the hashes that lead to it", async () => {
  await apply(event(1, "create"), event(2, "delete"));
  await pool.query("update bookings set deleted_at = now() - interval '2 days'");
  await maintain(pool, { ...keepAll, deletedRetentionDays: 1 }, clocksAgree);
  const { rows } = await pool.query("select payload, guest_hashes from bookings");
  expect(rows).toEqual([{ payload: null, guest_hashes: [] }]);
  expect(await apply(event(3, "create", {}, { note: "again" }))).toEqual(["recreated"]);
  expect(await findByEmail()).toEqual(["CANARY-1"]);
});

test("a content that was removed does not come back with a repetition of it", async () => {
  const create = (number: number) => event(number, "create", { idempotencyKey: "key" });
  await apply(create(1), event(2, "delete"));
  await pool.query("update bookings set deleted_at = now() - interval '2 days'");
  await maintain(pool, { ...keepAll, deletedRetentionDays: 1 }, clocksAgree);
  expect(await apply(create(3))).toEqual(["duplicate"]);
  const { rows } = await pool.query("select payload from booking_events");
  expect(rows).toEqual([1, 2, 3].map(() => ({ payload: null })));
});
