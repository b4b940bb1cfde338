import type { DigestKey, Queryable } from "@booking-events/store";
import { expect, test } from "vitest";
import type { BatchPlan } from "./plan-batch.ts";
import { writeBatch } from "./write-batch.ts";

const id = "0199a000-0000-7000-8000-000000000001";
const identity = { bookingId: id, partner: "acme", referenceKind: "trip" as const, reference: "TRIP-1" };
const at = new Date(0);
const booking = {
  ...{ ...identity, bookingKey: Buffer.from("key"), revision: 2, newContent: "logged" as const },
  state: {
    ...{ state: "active" as const, eventId: id, sequence: 1, lastSequence: 2, createdAt: at, updatedAt: at },
    ...{ content: { digest: "00".repeat(16), eventId: id, newestKeylessSequence: null }, deletedAt: null },
  },
};
const change = {
  ...identity,
  revision: 2,
  change: "updated" as const,
  eventId: id,
  sequence: 1,
  previousEventId: null,
};

test("the feed is locked after all else is written, also when a content is read from the log", async () => {
  const statements: string[] = [];
  const client = {
    async query(text: string) {
      statements.push(text.trim().split(/\s+/).slice(0, 2).join(" "));
      return { rows: [], rowCount: 1 };
    },
  } as unknown as Queryable;
  const nothing = { events: [], revised: [], displaced: [], reusingInLog: [], newBookings: [], consumerDeletes: [] };
  const plan = { ...nothing, changedBookings: [booking], changes: [change], outcomes: new Map(), warnings: [] };
  await writeBatch(client, plan satisfies BatchPlan, {} as DigestKey);
  expect(statements).toEqual(["select id,", "update bookings", "with feed", "insert into"]);
});
