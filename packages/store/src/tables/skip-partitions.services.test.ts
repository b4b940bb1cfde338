import { randomUUID } from "node:crypto";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import { inPreparedTransaction } from "../connect/prepared-transaction.ts";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { findProcessed, markDuplicates, reviseEvents } from "../index.ts";
import { listEvents } from "../look/list-events.ts";
import { insertEvents } from "./booking-events.ts";
import { bookingKey } from "./booking-key.ts";
import { firstIdAt, firstIdInPeriod, firstIdOfBooking } from "./event-ids.ts";
import { findCreatesAround } from "./find-creates-around.ts";
import { findKeyUses } from "./find-key-uses.ts";
import { readLog } from "./read-log.ts";
import { insertBookings, readLogged, updateBookings } from "./save-bookings.ts";

/** Partitions of 14 months before this one. */
const months = 14;
const now = new Date();
const key = bookingKey("acme", "trip", "TRIP-1");
const digest = "00".repeat(16);
const content = { digest, eventId: idAt(0), newestKeylessSequence: null };
const state = {
  ...{ state: "active" as const, eventId: idAt(0), sequence: 1, lastSequence: 1, content },
  ...{ createdAt: middleOf(0), updatedAt: middleOf(0), deletedAt: null },
};
const booking = {
  ...{ bookingKey: key, partner: "acme", referenceKind: "trip" as const, reference: "TRIP-1" },
  ...{ bookingId: randomUUID(), state, revision: 1, newContent: "logged" as const },
};
/** Of two days. */
const periodMs = 2 * 24 * 60 * 60 * 1_000;

const { pool } = useTestDatabase({ maxConnections: 2 });

function middleOf(monthsAgo: number): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - monthsAgo, 15));
}

function idAt(monthsAgo: number): string {
  return firstIdAt(middleOf(monthsAgo)).replace(/0$/, "1");
}

function partitionOf(monthsAgo: number): string {
  return `booking_events_${middleOf(monthsAgo).toISOString().slice(0, 7).replace("-", "_")}`;
}

beforeAll(async () => {
  for (let monthsAgo = 1; monthsAgo <= months; monthsAgo += 1) {
    const [from, to] = [monthsAgo, monthsAgo - 1].map((ago) => middleOf(ago).toISOString().slice(0, 7));
    await pool.query(
      `create table ${partitionOf(monthsAgo)} (like booking_events including all);
       do $$ begin execute format('alter table booking_events attach partition ${partitionOf(monthsAgo)}
         for values from (%L) to (%L)', first_event_id('${from}-01T00:00Z'), first_event_id('${to}-01T00:00Z')); end $$`,
    );
  }
  const events = Array.from({ length: months + 1 }, (_, monthsAgo) => ({
    ...{ ...booking, id: idAt(monthsAgo), kind: "create" as const, sequence: middleOf(monthsAgo).getTime() * 1_000 },
    ...{ idempotencyKey: `k-${monthsAgo}`, payload: '{"a":1}', contentDigest: digest, outcome: "updated" as const },
    ...{ duplicateOf: null, warnings: [], after: null, receivedAt: middleOf(monthsAgo) },
  }));
  await insertEvents(pool, events);
  await insertBookings(pool, await readLogged(pool, [booking]));
});

/** The partitions from which the work reads. */
async function partitionsRead(work: Work, transaction: Transaction = inTransaction): Promise<string[]> {
  return transaction(pool, async (client) => {
    const before = await countScans(client);
    await work(client);
    return [...(await countScans(client))]
      .filter(([name, scans]) => scans > (before.get(name) ?? 0))
      .map(([name]) => name);
  });
}

async function countScans(client: Queryable): Promise<Map<string, number>> {
  const { rows } = await client.query<{ name: string; scans: number }>(
    `select relname as name, seq_scan + idx_scan as scans from pg_stat_xact_user_tables
     where schemaname = current_schema() and relname like 'booking\\_events\\_%' order by relname`,
  );
  return new Map(rows.map(({ name, scans }) => [name, scans]));
}

type Work = (client: Queryable) => Promise<unknown>;
type Transaction = typeof inPreparedTransaction;

/** Those in which events may be that were received in this month or later. */
const current = [0, -1, -2].map(partitionOf).concat("booking_events_default");
const event = {
  ...{ id: idAt(0), bookingKey: key, kind: "create" as const, sequence: middleOf(0).getTime() * 1_000 },
  ...{ contentDigest: digest, idempotencyKey: "k-0" },
};

test.each<[string, Work]>([
  ["of an idempotency key", (client) => findKeyUses(client, [{ ...event, firstId: firstIdOfBooking(state) }])],
  [
    "of creates with the same content",
    (client) => findCreatesAround(client, [{ ...event, firstId: firstIdInPeriod(event, periodMs) }]),
  ],
  [
    "of a booking's log",
    (client) => readLog(client, [{ bookingKey: key, from: event, limit: 9, firstId: firstIdOfBooking(state) }]),
  ],
])("lookups %s look only into the months since the booking was created", async (_, look) => {
  expect(await partitionsRead(look)).toEqual(current.toSorted());
  expect(await partitionsRead(look, inPreparedTransaction)).toEqual(current.toSorted());
});

test("a lookup for an old booking does not make those for others look further", async () => {
  const old = { ...event, firstId: firstIdAt(middleOf(months)) };
  const lookups = [{ ...event, bookingKey: Buffer.from("new"), firstId: firstIdOfBooking(state) }];
  expect(await partitionsRead((client) => findKeyUses(client, lookups))).toEqual(current.toSorted());
  expect((await partitionsRead((client) => findKeyUses(client, [...lookups, old]))).length).toBe(months + 4);
});

test.each<[string, Work]>([
  ["which events are in the log", (client) => findProcessed(client, [idAt(3)])],
  [
    "the payload of a booking",
    async (client) => {
      const ofLog = { ...booking, state: { ...state, content: { ...content, eventId: idAt(3) } } };
      await updateBookings(client, await readLogged(client, [ofLog]));
    },
  ],
  [
    "events that repeat others",
    (client) => markDuplicates(client, [{ id: idAt(3), sequence: 1, duplicateOf: idAt(2) }]),
  ],
  [
    "events whose state has changed",
    (client) =>
      reviseEvents(client, [{ event: { ...event, id: idAt(3) }, outcome: "updated", warning: null, after: state }]),
  ],
])("%s: only the partitions of their ids are looked into", async (_, look) => {
  expect(await partitionsRead(look)).toEqual([partitionOf(3)]);
  expect(await partitionsRead(look, inPreparedTransaction)).toEqual([partitionOf(3)]);
});

test("a list of a period's events reads the partitions of the period, and of what its duplicates repeat", async () => {
  const period = { since: middleOf(3), until: new Date(middleOf(3).getTime() + 1) };
  expect(await partitionsRead((client) => listEvents(client, { ...period, limit: 9 }))).toEqual([
    partitionOf(3),
    partitionOf(2),
  ]);
});
