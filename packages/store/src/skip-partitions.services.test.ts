import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import { insertEvents } from "./booking-events.ts";
import { bookingKey } from "./booking-key.ts";
import { insertBookings, updateBookings } from "./bookings.ts";
import { inTransaction, type Queryable } from "./database.ts";
import { listEvents } from "./event-details.ts";
import { firstIdAt, firstIdInPeriod, firstIdOfBooking } from "./event-ids.ts";
import { findProcessed, markDuplicates, reviseEvents } from "./index.ts";
import { findCreatesAround, findKeyUses, readLog } from "./read-log.ts";

/** Partitions of 14 months before this one. */
const months = 14;
const now = new Date();
const key = bookingKey("acme", "trip", "TRIP-1");
const digest = "00".repeat(32);
const content = { digest, eventId: idAt(0), newestKeylessSequence: null };
const state = {
  ...{ state: "active" as const, eventId: idAt(0), sequence: 1, lastSequence: 1, content },
  ...{ createdAt: middleOf(0), updatedAt: middleOf(0), deletedAt: null },
};
const booking = {
  ...{ bookingKey: key, partner: "acme", referenceKind: "trip" as const, reference: "TRIP-1" },
  ...{ state, revision: 1, keepsPayload: false, trip: null },
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
  await insertBookings(pool, [booking]);
});

interface Plan {
  "Relation Name"?: string;
  "Actual Loops": number;
  Plans?: Plan[];
}

/** The partitions from which a query of the work reads. */
async function partitionsRead(work: (client: Queryable) => Promise<unknown>): Promise<string[]> {
  const read = new Set<string>();
  const note = ({ "Relation Name": relation, "Actual Loops": loops, Plans: plans = [] }: Plan): void => {
    if (loops > 0 && relation?.startsWith("booking_events_")) read.add(relation);
    plans.forEach(note);
  };
  await inTransaction(pool, (client) => {
    const explaining = {
      async query(text: string, values: unknown[]) {
        const { rows } = await client.query(`explain (analyze, format json) ${text}`, values);
        // What is updated is a node too, whose loops say nothing.
        for (const [{ Plan: plan }] of rows.map((row) => row["QUERY PLAN"]))
          (plan["Node Type"] === "ModifyTable" ? plan.Plans : [plan]).forEach(note);
        return client.query(text, values);
      },
    };
    return work(explaining as unknown as Queryable);
  });
  return [...read].toSorted();
}

/** Those in which events may be that were received in this month or later. */
const current = [0, -1, -2].map(partitionOf).concat("booking_events_default");
const event = {
  ...{ id: idAt(0), bookingKey: key, kind: "create" as const, sequence: middleOf(0).getTime() * 1_000 },
  ...{ contentDigest: digest, idempotencyKey: "k-0" },
};

test.each<[string, (client: Queryable) => Promise<unknown>]>([
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
});

test("a lookup for an old booking does not make those for others look further", async () => {
  const old = { ...event, firstId: firstIdAt(middleOf(months)) };
  const lookups = [{ ...event, bookingKey: Buffer.from("new"), firstId: firstIdOfBooking(state) }];
  expect(await partitionsRead((client) => findKeyUses(client, lookups))).toEqual(current.toSorted());
  expect((await partitionsRead((client) => findKeyUses(client, [...lookups, old]))).length).toBe(months + 4);
});

test.each<[string, (client: Queryable) => Promise<unknown>]>([
  ["which events are in the log", (client) => findProcessed(client, [idAt(3)])],
  [
    "the payload of a booking",
    (client) =>
      updateBookings(client, [{ ...booking, state: { ...state, content: { ...content, eventId: idAt(3) } } }]),
  ],
  [
    "events that repeat others",
    (client) => markDuplicates(client, [{ id: idAt(3), sequence: 1, duplicateOf: idAt(2) }]),
  ],
  [
    "events whose state has changed",
    (client) => reviseEvents(client, [{ event: { ...event, id: idAt(3) }, outcome: "updated", after: state }]),
  ],
  [
    "events of a period",
    (client) => listEvents(client, { since: middleOf(3), until: new Date(middleOf(3).getTime() + 1), limit: 9 }),
  ],
])("%s: only the partitions of their ids are looked into", async (_, look) => {
  expect(await partitionsRead(look)).toEqual([partitionOf(3)]);
});
