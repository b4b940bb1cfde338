import { waitFor } from "@booking-events/harness";
import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { exchange } from "@booking-events/harness/http-client";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createProducer } from "@booking-events/queue";
import type { EventEnvelope } from "@booking-events/schema";
import { openDigestKey, recordIfErased, writeDeadLetter } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { beforeAll, describe, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-receipt-tests-0123456789";
const otherSecret = "a-secret-of-another-partner-0123456789ab";
const slowSecret = "a-secret-of-a-slow-partner-0123456789abc";
const deletersSecret = "a-secret-of-a-partner-that-deletes-01234";
/** Until the first test that asks for a worker, all events wait. */
const shared = shareSurroundings(secret);
const { running } = shared;

beforeAll(() => {
  writePartnersFile(shared.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: null, "a-secret-of-yesterday": "2026-01-01T00:00:00Z" }, { rateLimit: noLimit }),
    partner("zenith", { [otherSecret]: null }, { rateLimit: noLimit }),
    partner("closed", { "a-secret-of-a-closed-partner": null }, { enabled: false }),
    partner("slow", { [slowSecret]: null }, { rateLimit: { perSecond: 0.01, burst: 2 } }),
    partner("deleter", { [deletersSecret]: null }, { kinds: ["delete"], rateLimit: noLimit }),
  ]);
});

interface Sent {
  secret?: string;
  kind?: string;
  key?: string;
  fields?: object;
}

function post(ingest: RunningApp, reference: string, { key, ...sent }: Sent = {}): Promise<string> {
  const headers: Record<string, string> = key === undefined ? {} : { "Idempotency-Key": key };
  return postAccepted(ingest, { secret, reference, headers, ...sent });
}

async function ask(lookup: RunningApp, eventId: string, bySecret = secret): Promise<{ status: number; body: string }> {
  const response = await fetchAsPartner(`${lookup.url}/booking-event/receipt/${bySecret}/${eventId}`);
  return { status: response.status, body: await response.text() };
}

async function receipt(lookup: RunningApp, eventId: string): Promise<unknown> {
  const { status, body } = await ask(lookup, eventId);
  expect([status, body]).toEqual([200, body]);
  return JSON.parse(body);
}

async function untilReceipt(lookup: RunningApp, eventId: string, expected: object): Promise<void> {
  await waitFor(async () => expect(await receipt(lookup, eventId)).toEqual({ eventId, ...expected }));
}

test("lookup keeps an idle connection longer than Google's load balancer does", async () => {
  const { url } = await running("lookup");
  const { headers } = await exchange(Number(new URL(url).port), { method: "GET", path: "/booking-event/receipt/x/y" });
  expect(headers).toMatchObject({ Connection: "close" });
  const known = { method: "GET", path: `/booking-event/receipt/${secret}/y` };
  expect((await exchange(Number(new URL(url).port), known)).headers).toMatchObject({ "Keep-Alive": "timeout=650" });
});

/** An envelope as in the queue. A number orders the events. */
function envelope(number: number, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const sequence = (Date.now() - 60_000 + number) * 1_000;
  const time = Math.floor(sequence / 1_000)
    .toString(16)
    .padStart(12, "0");
  return {
    version: 1,
    eventId: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`,
    kind: "create",
    partner: "acme",
    sequence,
    receivedAt: new Date(sequence / 1_000).toISOString(),
    idempotencyKey: null,
    payload: { consumerTripPartnerExternalReference: "TRIP-1", note: number },
    ...more,
  };
}

describe("events whose end needs special circumstances", () => {
  const options = { duplicateWindowMs: 72 * 3_600_000 };

  test("superseded: a later event was applied first", async () => {
    const lookup = await running("lookup");
    const [earlier, later] = [envelope(1), envelope(2)];
    await applyEvents(shared.pool, [later], options);
    await applyEvents(shared.pool, [earlier], options);
    const { eventId } = earlier;
    expect(await receipt(lookup, eventId)).toEqual({ eventId, status: "superseded", decidedBy: later.eventId });
  });

  test("expired: the event is older than the log", async () => {
    const lookup = await running("lookup");
    const { rows } = await shared.pool.query("select horizon from log_retention");
    await shared.pool.query("update log_retention set horizon = now()");
    const old = envelope(1);
    await applyEvents(shared.pool, [old], options);
    await shared.pool.query("update log_retention set horizon = $1", [rows[0].horizon]);
    expect(await receipt(lookup, old.eventId)).toEqual({ eventId: old.eventId, status: "expired" });
  });

  test("failed: with the code of the dead letter, until an operator replays it", async () => {
    const lookup = await running("lookup");
    const { pool, environment } = shared;
    const failed = envelope(1);
    const { eventId, kind, sequence } = failed;
    await writeDeadLetter(pool, {
      eventId,
      partner: "acme",
      kind,
      referenceKind: "trip",
      reference: "TRIP-1",
      sequence,
      errorCode: "22012",
      error: "canary",
      attempts: 1,
      envelope: Buffer.from(JSON.stringify(failed)),
    });
    expect(await receipt(lookup, eventId)).toEqual({ eventId, status: "failed", code: "22012" });

    const producer = createProducer({
      redisServers: environment["REDIS_URL"] ?? "",
      prefix: environment["QUEUE_PREFIX"] ?? "",
      onError: () => {},
    });
    await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
    await producer.requeue({ eventId, text: JSON.stringify(failed), envelope: failed });
    expect(await receipt(lookup, eventId)).toEqual({ eventId, status: "waiting" });
    expect(await ask(lookup, eventId, otherSecret)).toMatchObject({ status: 404 });
    await producer.close();
  });

  test("erased: an operator has erased the booking", async () => {
    const lookup = await running("lookup");
    const { pool } = shared;
    const [before, after] = [envelope(1), envelope(2)];
    await applyEvents(pool, [before], options);
    const key = await openDigestKey(pool, undefined);
    await pool.query("update bookings set erased_at = now(), state = 'deleted', payload = null, content_digest = null");
    await pool.query("update bookings set booking_key = $1", [key.hashBookingKey(await onlyBookingKey())]);
    await pool.query("update booking_events set booking_key = (select booking_key from bookings), payload = null");
    const { eventId: id, kind, sequence, receivedAt } = after;
    await recordIfErased(pool, key, {
      id,
      partner: "acme",
      kind,
      referenceKind: "trip",
      reference: "TRIP-1",
      sequence,
      receivedAt: new Date(receivedAt),
    });
    for (const eventId of [before.eventId, after.eventId])
      expect(await receipt(lookup, eventId)).toEqual({ eventId, status: "erased" });
  });

  async function onlyBookingKey(): Promise<Buffer> {
    const { rows } = await shared.pool.query("select booking_key from bookings");
    return rows[0].booking_key;
  }
});

test("an event is waiting from the moment of its 200, and is never missing on its way into the database", async () => {
  const [ingest, lookup] = await Promise.all([running("ingest"), running("lookup")]);
  const postAndAsk = async (index: number) => {
    const eventId = await post(ingest, `TRIP-${index}`);
    expect(await receipt(lookup, eventId)).toEqual({ eventId, status: "waiting" });
    return eventId;
  };
  const eventIds = await Promise.all(Array.from({ length: 50 }, (_, index) => postAndAsk(index)));
  // Events move while they are asked for. A receipt that is not 200 fails the test.
  const starting = running("worker");
  await waitFor(
    async () => {
      eventIds.push(await post(ingest, `TRIP-${eventIds.length}`));
      const receipts = await Promise.all(eventIds.map((eventId) => receipt(lookup, eventId)));
      for (const one of receipts) expect(one).toMatchObject({ status: expect.stringMatching(/^(waiting|applied)$/) });
      expect(receipts.filter((one) => (one as { status: string }).status === "waiting")).toEqual([]);
    },
    { timeoutMs: 30_000 },
  );
  await starting;
});

test("an applied event's receipt says what it did, and which event decides the booking now", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const created = await post(ingest, "TRIP-1");
  await untilReceipt(lookup, created, { status: "applied", outcome: "created", decidedBy: created });
  const updated = await post(ingest, "TRIP-1", { kind: "update", fields: { note: "new" } });
  await untilReceipt(lookup, updated, { status: "applied", outcome: "updated", decidedBy: updated });
  await untilReceipt(lookup, created, { status: "applied", outcome: "created", decidedBy: updated });
  const deleted = await post(ingest, "TRIP-1", { kind: "delete" });
  await untilReceipt(lookup, deleted, { status: "applied", outcome: "deleted", decidedBy: deleted });
});

test("a duplicate's receipt names the event that it repeats, by its key or by its content", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const keyed = await post(ingest, "TRIP-1", { key: "K" });
  const keyedAgain = await post(ingest, "TRIP-1", { key: "K" });
  await untilReceipt(lookup, keyedAgain, { status: "duplicate", duplicateOf: keyed, decidedBy: keyed });

  const created = await post(ingest, "TRIP-2");
  await untilReceipt(lookup, created, { status: "applied", outcome: "created", decidedBy: created });
  const deleted = await post(ingest, "TRIP-2", { kind: "delete" });
  await untilReceipt(lookup, deleted, { status: "applied", outcome: "deleted", decidedBy: deleted });
  const createdAgain = await post(ingest, "TRIP-2");
  const updatedAgain = await post(ingest, "TRIP-2", { kind: "update" });
  for (const duplicate of [createdAgain, updatedAgain])
    await untilReceipt(lookup, duplicate, { status: "duplicate", duplicateOf: created, decidedBy: deleted });
});

test("what an event was warned of is in its receipt, each code once, and in what operators see", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const fields = { consumerPhone: "12", agentPhoneNumber: "12", consumer_given_name: "Ada" };
  const eventId = await post(ingest, "TRIP-W", { fields });
  const warnings = ["unreadable-phone", "similar-name"];
  await untilReceipt(lookup, eventId, { status: "applied", outcome: "created", decidedBy: eventId, warnings });
  for (const [command, path] of [
    [
      ["bookings", "show", "acme", "TRIP-W"],
      ["events", 0],
    ],
    [["events", "show", eventId], []],
  ] as const) {
    const { stdout } = await runOps([...command, "--json"], { environment: shared.environment });
    const shown = path.reduce((value: unknown, key) => Object(value)[key], JSON.parse(stdout));
    expect(shown).toMatchObject({ id: eventId, warnings });
  }
});

test("a sender's likely mistake is in the receipt, too", async () => {
  const [ingest, , lookup] = await Promise.all([running("ingest"), running("worker"), running("lookup")]);
  const first = await post(ingest, "TRIP-1", { key: "K" });
  const other = await post(ingest, "TRIP-1", { key: "K", fields: { note: "other" } });
  await untilReceipt(lookup, other, {
    status: "applied",
    outcome: "updated",
    decidedBy: other,
    warnings: ["key-reused", "replaced"],
  });
  await untilReceipt(lookup, first, { status: "applied", outcome: "created", decidedBy: other });
});

test("what is not the partner's own event gets the same 404, byte for byte", async () => {
  const [ingest, lookup] = await Promise.all([running("ingest"), running("lookup")]);
  const waiting = await post(ingest, "TRIP-1", { secret: otherSecret });
  const applied = envelope(1, { partner: "zenith" });
  await applyEvents(shared.pool, [applied], { duplicateWindowMs: 0 });
  const foreign = [waiting, applied.eventId];
  const unknown = ["01a1fb0c-d72c-7345-a7ee-38bfa851309c", "01a1fb0c-d72c-4345-a7ee-38bfa851309c"];
  const malformed = ["x", "%00", "%F0%9F%92%A9", "wait", "..", `${waiting}%20`, "'", "a".repeat(2_000)];
  for (const eventId of [...foreign, ...unknown, ...malformed]) {
    const { status, body, headers } = await exchange(lookup.port, {
      method: "GET",
      path: `/booking-event/receipt/${secret}/${eventId}`,
    });
    expect([eventId, status, body]).toEqual([
      eventId,
      404,
      '{"message":"There is no such event.","code":"no-such-event"}',
    ]);
    expect(headers["X-Request-Id"]).toMatch(/^[0-9a-f-]{36}$/);
  }
  expect(await ask(lookup, waiting, otherSecret)).toMatchObject({ status: 200 });
  expect(await ask(lookup, applied.eventId.toUpperCase(), otherSecret)).toMatchObject({ status: 200 });
});

test("a stranger gets the 403 of every other path, whether the event exists or not", async () => {
  const [ingest, lookup] = await Promise.all([running("ingest"), running("lookup")]);
  const eventId = await post(ingest, "TRIP-1");
  for (const stranger of ["", "unknown", "a-secret-of-yesterday", "a-secret-of-a-closed-partner", "%E0%A4%A"]) {
    for (const id of [eventId, "x"]) {
      const path = `/booking-event/receipt/${stranger}/${id}`;
      const { status, body } = await exchange(lookup.port, { method: "GET", path });
      expect([stranger, status, body]).toEqual([stranger, 403, '{"message":"Invalid secret","code":"invalid-secret"}']);
    }
  }
});

test("a partner asks with any of its secrets, even if it may send nothing by it", async () => {
  const lookup = await running("lookup");
  const event = envelope(1, { partner: "deleter" });
  await applyEvents(shared.pool, [event], { duplicateWindowMs: 0 });
  expect(await ask(lookup, event.eventId, deletersSecret)).toMatchObject({ status: 200 });
});

test("questions have the partner's rate limit, and take nothing from its events", async () => {
  const [ingest, lookup] = await Promise.all([running("ingest"), running("lookup")]);
  const eventId = await post(ingest, "TRIP-1", { secret: slowSecret });
  const statuses = [];
  for (let asked = 0; asked < 3; asked += 1) statuses.push((await ask(lookup, eventId, slowSecret)).status);
  expect(statuses).toEqual([200, 200, 429]);
  await post(ingest, "TRIP-2", { secret: slowSecret });
});

test("other paths and methods get 404 and 405 with Allow", async () => {
  const lookup = await running("lookup");
  const path = `/booking-event/receipt/${secret}/01a1fb0c-d72c-7345-a7ee-38bfa851309c`;
  for (const other of ["/", "/booking-event/receipt", `/booking-event/create/${secret}`, `${path}/more`]) {
    expect(await exchange(lookup.port, { method: "GET", path: other })).toMatchObject({ status: 404 });
  }
  for (const method of ["POST", "PUT", "DELETE"]) {
    expect(await exchange(lookup.port, { method, path })).toMatchObject({
      status: 405,
      headers: { Allow: "GET, HEAD" },
    });
  }
  expect(await exchange(lookup.port, { method: "HEAD", path })).toMatchObject({ status: 404, body: "" });
});
