import { hash } from "node:crypto";
import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, describe, expect, test } from "vitest";
import { inTransaction } from "../connect/transaction.ts";
import { countPages } from "../testing/count-pages.ts";
import { insertEvents, insertMissingEvent, markReferenceKind } from "./booking-events.ts";
import { bookingKey, consumerHash } from "./booking-key.ts";
import { findCreatesAround } from "./find-creates-around.ts";
import { findKeyUses } from "./find-key-uses.ts";
import { readLog, startOfLog } from "./read-log.ts";

const events = 50_000;
/** A page has 8 KB. The events of one booking fill thousands of pages. An index of each partition needs one or two. */
const fewPages = 60;

const { pool, url } = useTestDatabase({ maxConnections: 2 });

describe.each([
  { what: "repeat one", reference: "REPEATED", duplicateOf: "'00000000-0000-7000-8000-000000000001'", warnings: "{}" },
  { what: "have different contents", reference: "REUSED", duplicateOf: "null", warnings: "{key-reused}" },
])("many events of one booking with one key that $what", ({ reference, duplicateOf, warnings }) => {
  const key = bookingKey("acme", "trip", reference);
  const digest = (number: number) => String(number).padStart(64, "0");

  beforeAll(async () => {
    await pool.query("truncate booking_events");
    // The first event counts, the others with the key don't, and the last event has no key.
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, idempotency_key, payload,
         content_digest, outcome, received_at, state_after, duplicate_of, warnings)
       select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'acme', 'update', 'trip', '${reference}', $1, n,
         case when n <= ${events} then 'k-1' end, '{}', decode(lpad(n::text, 64, '0'), 'hex'), 'updated', now(), 'active',
         case when n between 2 and ${events} then ${duplicateOf}::uuid end,
         case when n between 2 and ${events} then '${warnings}' else '{}' end::text[]
       from generate_series(1, ${events} + 1) as n`,
      [key],
    );
    await execute(url, "vacuum analyze booking_events");
  });

  test("the uses of the key are found in a few pages", async () => {
    const places = [1, events / 2, events + 9].map((number) => ({
      ...{ bookingKey: key, idempotencyKey: "k-1", kind: "update" as const, contentDigest: digest(number) },
    }));
    expect(await countPages(pool, (client) => findKeyUses(client, places))).toBeLessThan(fewPages);
    const [first, middle, unknown] = await findKeyUses(pool, places);
    expect(first).toMatchObject({ first: { sequence: 1 }, same: { sequence: 1 } });
    expect(middle?.same).toEqual(
      duplicateOf === "null" ? { id: "00000000-0000-7000-8000-000000025000", sequence: 25_000 } : null,
    );
    expect(unknown).toMatchObject({ first: { sequence: 1 }, same: null });
  });

  test("a late event at the end of the log is folded in after a few pages", async () => {
    const from = { sequence: events + 1, id: startOfLog.id };
    const range = { bookingKey: key, from, limit: 20 };
    expect(await countPages(pool, (client) => readLog(client, [range]))).toBeLessThan(fewPages);
    const [page] = await readLog(pool, [range]);
    expect(page?.before?.sequence).toBe(duplicateOf === "null" ? events : 1);
    expect(page?.events.map(({ sequence }) => sequence)).toEqual([events + 1]);
  });
});

test("a place in a booking's long log is found in a few pages, before PostgreSQL knows how long it is", async () => {
  const hot = bookingKey("acme", "trip", "HOT");
  await pool.query("truncate booking_events");
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at, state_after)
     select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'acme', 'create', 'trip', 'T',
       case when n % 5 = 0 then $1 else sha256(n::text::bytea) end, n, '{}', sha256(''), 'created', now(), 'active'
     from generate_series(1, ${events}) as n`,
    [hot],
  );
  // As in a new installation.
  await pool.query("delete from pg_statistic where starelid = 'booking_events'::regclass");
  const place = { bookingKey: hot, id: startOfLog.id, sequence: events / 2 };
  const range = { bookingKey: hot, from: place, limit: 20 };
  expect(await countPages(pool, (client) => readLog(client, [range]))).toBeLessThan(5 * fewPages);
  const [page] = await readLog(pool, [range]);
  expect(page?.before?.sequence).toBe(events / 2 - 5);
  expect(page?.events.map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: 20 }, (_, index) => events / 2 + 5 * index),
  );
  const create = { ...place, contentDigest: hash("sha256", "", "hex") };
  expect(await countPages(pool, (client) => findCreatesAround(client, [create]))).toBeLessThan(fewPages);
  expect(await findCreatesAround(pool, [create])).toEqual([
    { earlier: events / 2 - 5, nextId: expect.stringMatching(/25000$/), nextSequence: events / 2 },
  ]);
});

test("events with the same sequence are in the order of their ids", async () => {
  const key = bookingKey("acme", "trip", "TIES");
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  await pool.query("truncate booking_events");
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at, state_after)
     select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'acme', 'create', 'trip', 'T', $1, (n + 3) / 4,
       '{}', sha256(''), 'created', now(), 'active'
     from generate_series(8, 1, -1) as n`,
    [key],
  );
  for (let n = 1; n <= 8; n += 1) {
    const from = { id: id(n), sequence: Math.floor((n + 3) / 4) };
    const [page] = await readLog(pool, [{ bookingKey: key, from, limit: 8 }]);
    expect(page?.before?.id).toBe(n === 1 ? undefined : id(n - 1));
    expect(page?.events.map((event) => event.id)).toEqual(Array.from({ length: 9 - n }, (_, index) => id(n + index)));
    const places = [{ ...from, bookingKey: key, contentDigest: hash("sha256", "", "hex") }];
    const [around] = await findCreatesAround(pool, places);
    expect(around?.nextId).toBe(n === 8 ? null : id(n + 1));
  }
});

test("of many events with the same sequence, no more is read than was asked for", async () => {
  const key = bookingKey("acme", "trip", "IMPORTED");
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  await pool.query("truncate booking_events");
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at, state_after)
     select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'acme', 'update', 'trip', 'T', $1, 7,
       '{}', sha256(''), 'updated', now(), 'active'
     from generate_series(1, ${events}) as n`,
    [key],
  );
  await execute(url, "vacuum analyze booking_events");
  const range = { bookingKey: key, from: { id: id(events / 2), sequence: 7 }, limit: 20 };
  expect(await countPages(pool, (client) => readLog(client, [range]))).toBeLessThan(5 * fewPages);
  const [page] = await readLog(pool, [range]);
  expect(page).toMatchObject({ before: { id: id(events / 2 - 1) }, isEnd: false });
  expect(page?.events.map((event) => event.id)).toEqual(Array.from({ length: 20 }, (_, n) => id(events / 2 + n)));
});

test("whether a consumer has bookings with trip references is found in a few pages, however many it has", async () => {
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, last_sequence,
       revision, consumer_hash, created_at, updated_at)
     select sha256(n::text::bytea), 'acme', 'trip', 'T' || n, 'active', gen_random_uuid(), n, n, 1,
       case when n > 10 then $1::bigint else $2::bigint end, now(), now()
     from generate_series(1, 20000) as n`,
    ["C1", "C2"].map((reference) => consumerHash(bookingKey("acme", "consumer", reference))),
  );
  const deletes = ["C1", "C2", "C3"].map((reference, index) => ({
    ...{ id: `0199a000-0000-7000-8000-00000000000${index}`, partner: "acme", kind: "delete" as const },
    ...{ referenceKind: "consumer" as const, reference, bookingKey: bookingKey("acme", "consumer", reference) },
    ...{ sequence: index + 1, idempotencyKey: null, payload: "{}", contentDigest: hash("sha256", reference, "hex") },
    ...{ outcome: "deleted" as const, duplicateOf: null, warnings: [], after: null, receivedAt: new Date(0) },
  }));
  const ids = deletes.map(({ id }) => id);
  await insertEvents(pool, deletes);
  await execute(url, "vacuum analyze bookings, booking_events");
  expect(await countPages(pool, (client) => markReferenceKind(client, deletes))).toBeLessThan(fewPages);
  expect((await markReferenceKind(pool, deletes)).toSorted()).toEqual(ids.slice(0, 2));
});

describe("an event that is in the log already", () => {
  const event = {
    ...{
      id: "0199b000-0000-7000-8000-000000000000",
      partner: "acme",
      kind: "create" as const,
      outcome: "erased" as const,
    },
    ...{ referenceKind: "trip" as const, reference: "TRIP-1", bookingKey: bookingKey("acme", "trip", "TRIP-1") },
    ...{ sequence: 1, idempotencyKey: null, payload: null, contentDigest: null, duplicateOf: null, warnings: [] },
    ...{ after: null, receivedAt: new Date(0) },
  };
  const other = { ...event, id: "0199b000-0000-7000-8000-000000000001" };
  const logged = async () =>
    (await pool.query("select id, kind from booking_events where id = any($1)", [[event.id, other.id]])).rows;

  beforeAll(async () => {
    expect(await insertEvents(pool, [event])).toBe(true);
  });

  test("keeps others from being inserted with it, and the caller is told", async () => {
    expect(await insertEvents(pool, [{ ...event, kind: "delete" }, other])).toBe(false);
    expect(await logged()).toEqual([{ id: event.id, kind: "create" }]);
  });

  test("stays as it is when it is inserted only if it is missing, in a transaction that goes on", async () => {
    await inTransaction(pool, async (client) => {
      await insertMissingEvent(client, { ...event, kind: "delete" });
      await insertMissingEvent(client, other);
    });
    expect(await logged()).toEqual([event, other].map(({ id, kind }) => ({ id, kind })));
  });
});

test("after events have been inserted, the transaction plans its statements as before", async () => {
  const modes = await inTransaction(pool, async (client) => {
    const readMode = async () => (await client.query("show plan_cache_mode")).rows;
    const before = await readMode();
    await insertEvents(client, []);
    return [before, await readMode()];
  });
  expect(modes[1]).toEqual(modes[0]);
});
