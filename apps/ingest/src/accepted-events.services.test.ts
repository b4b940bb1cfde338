import { readdirSync, readFileSync } from "node:fs";
import { exchange, type RawAnswer } from "@booking-events/harness/http-client";
import { acmeSecret, partner } from "@booking-events/harness/partners";
import { createPartnerRegistry } from "@booking-events/partners";
import { type BookingField, bookingFields, type EventEnvelope, parseJson } from "@booking-events/schema";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** What Redis contains after an answer: exactly what was sent, or nothing. */

const reference = { consumerTripPartnerExternalReference: "T-1" };
const form = "application/x-www-form-urlencoded";

const validValues: Record<BookingField["type"], string> = {
  text: "Zoë & 東京 + 100 %",
  phone: "+1 555 0100 123",
  flag: "true",
  date: "2026-06-14T07:27:17.335+02:00",
  email: "o'brien@example.com",
  language: "en-GB",
};

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

test.each(["create", "update"])("%s: each field is queued as it was sent, as JSON and as a form", async (kind) => {
  const booking = Object.fromEntries(bookingFields.map(({ name, type }) => [name, validValues[type]]));
  expect((await queuedAfter(postJson(kind, booking))).payload).toEqual(booking);
  expect((await queuedAfter(postForm(kind, booking))).payload).toEqual(booking);
  const nullable = bookingFields.filter((field) => field.nullable).map(({ name }) => [name, null]);
  const withoutValues = { ...reference, ...Object.fromEntries(nullable) };
  expect((await queuedAfter(postJson(kind, withoutValues))).payload).toEqual(withoutValues);
});

const folder = new URL("../../../packages/schema/examples/", import.meta.url);
const examples = readdirSync(folder).map((name) => ({
  name,
  ...Object(parseJson(readFileSync(new URL(name, folder), "utf8"))),
}));

test.each(examples)("the example $name gets the expected answer", async (example) => {
  const before = (await ingest.queuedEvents()).length;
  const { kind, contentType = "application/json", body = JSON.stringify(example.payload), payload } = example;
  const answer = await post(kind, body, { "Content-Type": contentType });
  if (example.expect.valid) {
    const event = await queuedAfter(Promise.resolve(answer));
    const { warnings } = example.expect;
    expect(answer.body).toBe(JSON.stringify({ success: true, eventId: event.eventId, warnings }));
    expect(event).toMatchObject({ kind, partner: "acme" });
    // Compared as text, because `toEqual` ignores a key named __proto__.
    expect(JSON.stringify(event.payload)).toBe(JSON.stringify(payload));
  } else {
    expect(answer.status).toBe(422);
    const { violationList } = example.expect;
    expect(JSON.parse(answer.body)).toEqual({ message: "Invalid data", code: "invalid-data", violationList });
    expect(await ingest.queuedEvents()).toHaveLength(before);
  }
});

describe("a queued event", () => {
  test("is an envelope and nothing else", async () => {
    const before = Date.now();
    const answer = await postJson("create", reference, { "Idempotency-Key": "key-1" });
    const event = await queuedAfter(Promise.resolve(answer));
    expect(event).toEqual({
      version: 1,
      eventId: JSON.parse(answer.body).eventId,
      kind: "create",
      partner: "acme",
      sequence: expect.any(Number),
      receivedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      idempotencyKey: "key-1",
      secretId: "s1",
      payload: reference,
    });
    expect(Date.parse(event.receivedAt)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(event.receivedAt)).toBeLessThanOrEqual(Date.now());
  });

  test("has the key from webhook-id, or none", async () => {
    const named = await queuedAfter(postJson("create", reference, { "webhook-id": "msg-1" }));
    const unnamed = await queuedAfter(postJson("create", reference));
    expect([named.idempotencyKey, unnamed.idempotencyKey]).toEqual(["msg-1", null]);
  });

  test("belongs to the partner whose secret was used", async () => {
    const { body } = await exchange(ingest.port, {
      path: "/booking-event/delete/zenith-secret",
      body: JSON.stringify(reference),
    });
    expect((await findQueued(JSON.parse(body).eventId)).partner).toBe("zenith");
  });

  test("says which country the partner had, by which its phone numbers are read", async () => {
    const british = createPartnerRegistry({
      partners: [partner("british", { "british-secret": null }, { country: "GB" })],
    });
    const fresh = await startIngest({ partners: () => british });
    try {
      const path = "/booking-event/create/british-secret";
      const body = JSON.stringify({ ...reference, consumerPhone: "07911 123456", agentPhoneNumber: "0000" });
      const { warnings } = JSON.parse((await exchange(fresh.port, { path, body })).body);
      expect(warnings).toMatchObject([{ code: "unreadable-phone", propertyPath: ["agentPhoneNumber"] }]);
      expect(await fresh.queuedEvents()).toMatchObject([{ partner: "british", defaultCountry: "GB" }]);
    } finally {
      await fresh.close();
    }
  });

  test("is ordered after the events accepted before it", async () => {
    const sequences: number[] = [];
    for (let index = 0; index < 20; index += 1) {
      sequences.push((await queuedAfter(postJson("update", reference))).sequence);
    }
    expect(new Set(sequences).size).toBe(20);
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  });

  test("leaves nothing in Redis except its job, its place in the queue, and the sequence", async () => {
    const fresh = await startIngest();
    try {
      const path = `/booking-event/create/${acmeSecret}`;
      const { body } = await exchange(fresh.port, { path, body: JSON.stringify(reference) });
      const keys = (await fresh.redis.keys("*")).filter((key) => key.startsWith(fresh.prefix));
      const names = ["sequence", `events:${JSON.parse(body).eventId}`, "events:marker", "events:wait"];
      expect(keys.map((key) => key.slice(fresh.prefix.length + 1)).sort()).toEqual(names.sort());
    } finally {
      await fresh.close();
    }
  });

  test("is queued exactly once when a thousand are sent at once", async () => {
    const fresh = await startIngest();
    try {
      const path = `/booking-event/create/${acmeSecret}`;
      const body = JSON.stringify(reference);
      const answers = await Promise.all(Array.from({ length: 1_000 }, () => exchange(fresh.port, { path, body })));
      const receipts = answers.map((answer) => JSON.parse(answer.body).eventId);
      const queued = await fresh.queuedEvents();
      expect(queued.map(({ eventId }) => eventId).sort()).toEqual(receipts.sort());
      expect(new Set(queued.map(({ sequence }) => sequence)).size).toBe(1_000);
    } finally {
      await fresh.close();
    }
  });
});

function postJson(kind: string, payload: object, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return post(kind, JSON.stringify(payload), headers);
}

function postForm(kind: string, payload: Record<string, string>): Promise<RawAnswer> {
  return post(kind, new URLSearchParams(payload).toString(), { "Content-Type": form });
}

function post(kind: string, body: string, headers: Record<string, string>): Promise<RawAnswer> {
  return exchange(ingest.port, { path: `/booking-event/${kind}/${acmeSecret}`, headers, body });
}

async function queuedAfter(answer: Promise<RawAnswer>): Promise<EventEnvelope> {
  const { status, body } = await answer;
  expect([status, body]).toEqual([200, expect.stringContaining("eventId")]);
  return findQueued(JSON.parse(body).eventId);
}

async function findQueued(eventId: string): Promise<EventEnvelope> {
  return parseJson((await ingest.redis.hget(`${ingest.prefix}:events:${eventId}`, "data")) ?? "null") as EventEnvelope;
}
