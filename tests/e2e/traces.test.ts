import { randomBytes } from "node:crypto";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { type ExportedSpan, type OtlpReceiver, startOtlpReceiver } from "@booking-events/harness/otlp-receiver";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postEvent } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const shared = shareSurroundings(secret);
const callersSpanId = "00f067aa0ba902b7";
/** OpenTelemetry reads the time of day again for each span, in milliseconds. */
const clockPrecisionMs = 1.1;

let collector: OtlpReceiver;

beforeAll(async () => {
  collector = await startOtlpReceiver();
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50" };
  Object.assign(shared.environment, settings);
});
afterAll(() => collector.close());

/** What a partner sends with a trace of its own. */
function newTrace(): { traceId: string; traceparent: string } {
  const traceId = randomBytes(16).toString("hex");
  return { traceId, traceparent: `00-${traceId}-${callersSpanId}-01` };
}

function runBoth(): Promise<[RunningApp, RunningApp]> {
  return Promise.all([shared.running("ingest"), shared.running("worker")]);
}

interface Sent {
  reference?: string;
  headers?: Record<string, string>;
  fields?: Record<string, unknown>;
  path?: string;
}

function post(ingest: RunningApp, { reference = "TRIP-1", headers = {}, fields = {}, path = secret }: Sent = {}) {
  return postEvent(ingest, { secret: path, reference, headers, fields });
}

function spansOf(trace: string): ExportedSpan[] {
  return collector.spans().filter((span) => span.traceId === trace);
}

/** Of ingest, since a point in a test. */
function requestsSince(): () => ExportedSpan[] {
  const before = new Set(collector.spans().map(({ spanId }) => spanId));
  return () => collector.spans().filter(({ kind, spanId }) => kind === "server" && !before.has(spanId));
}

function find(spans: ExportedSpan[], name: string): ExportedSpan {
  const span = spans.find((candidate) => candidate.name === name);
  if (span === undefined) throw new Error(`No span ${name} among ${spans.map((other) => other.name).join(", ")}`);
  return span;
}

/** The batches that had this event. */
function batchesOf({ traceId, spanId }: ExportedSpan): ExportedSpan[] {
  const isOfIt = (link: { traceId: string; spanId: string }) => link.traceId === traceId && link.spanId === spanId;
  return collector.spans().filter(({ name, links }) => name === "apply batch" && links.some(isOfIt));
}

async function untilApplied(reference = "TRIP-1"): Promise<void> {
  await waitFor(async () => {
    const { rows } = await shared.pool.query("select state from bookings where reference = $1", [reference]);
    expect(rows).toEqual([{ state: "active" }]);
  });
}

/** The envelopes that wait in Redis. */
async function queuedEnvelopes(prefix: string): Promise<Record<string, unknown>[]> {
  const redis = new Redis(shared.environment["REDIS_URL"] ?? "");
  try {
    const ids = await redis.lrange(`${prefix}:events:wait`, 0, -1);
    const texts = await Promise.all(ids.map((id) => redis.hget(`${prefix}:events:${id}`, "data")));
    return texts.map((text) => JSON.parse(text ?? ""));
  } finally {
    redis.disconnect();
  }
}

describe("one trace", () => {
  test("continues the partner's and leads from the POST to the commit", async () => {
    const [ingest] = await runBoth();
    const { traceId, traceparent } = newTrace();
    const answer = await post(ingest, { headers: { traceparent } });
    const { eventId } = (await answer.json()) as { eventId: string };
    await waitFor(() => find(spansOf(traceId), "apply event"));
    await waitFor(() => find(spansOf(traceId), "send events"));
    const spans = spansOf(traceId);
    expect(spans).toHaveLength(3);
    const request = find(spans, "POST /booking-event/create/{secret}");
    expect(request).toMatchObject({ service: "booking-events-ingest", kind: "server", parentSpanId: callersSpanId });
    expect(request.attributes).toEqual({
      "http.request.method": "POST",
      "http.route": "/booking-event/create/{secret}",
      "http.response.status_code": 200,
      "booking_events.request_id": eventId,
      "booking_events.event_id": eventId,
      "booking_events.kind": "create",
      "booking_events.partner": "acme",
      "booking_events.outcome": "accepted",
    });
    const enqueueing = find(spans, "send events");
    expect(enqueueing).toMatchObject({ kind: "producer", parentSpanId: request.spanId, hasFailed: false });
    const applying = find(spans, "apply event");
    expect(applying).toMatchObject({ service: "booking-events-worker", kind: "consumer", hasFailed: false });
    expect(applying.parentSpanId).toBe(enqueueing.spanId);
    expect(applying.attributes).toMatchObject({
      "booking_events.event_id": eventId,
      "booking_events.partner": "acme",
      "booking_events.kind": "create",
      "booking_events.outcome": "created",
    });
    expect(request.startMs - clockPrecisionMs).toBeLessThanOrEqual(enqueueing.startMs);
    expect(enqueueing.endMs - clockPrecisionMs).toBeLessThanOrEqual(request.endMs);

    await waitFor(() => expect(batchesOf(enqueueing)).toHaveLength(1));
    const batch = find(batchesOf(enqueueing), "apply batch");
    expect(batch).toMatchObject({ kind: "consumer", parentSpanId: "", hasFailed: false });
    expect(batch.links).toEqual([{ traceId, spanId: enqueueing.spanId }]);
    expect(applying.links).toEqual([{ traceId: batch.traceId, spanId: batch.spanId }]);
    const phases = spansOf(batch.traceId).filter(({ parentSpanId }) => parentSpanId === batch.spanId);
    expect(phases.map(({ name }) => name)).toEqual(["begin", "lock", "read", "write", "commit"]);
    for (const { kind, attributes, name, startMs, endMs } of phases) {
      expect(kind).toBe("client");
      expect(attributes).toEqual({ "db.system.name": "postgresql", "db.operation.name": name });
      expect(startMs).toBeGreaterThanOrEqual(batch.startMs - clockPrecisionMs);
      expect(endMs).toBeLessThanOrEqual(batch.endMs + clockPrecisionMs);
    }
    expect(collector.paths).toContain("/v1/traces");
  });

  test("is a new one if the partner sends no valid traceparent", async () => {
    const { traceId, traceparent } = newTrace();
    const headers = {
      absent: {},
      malformed: { traceparent: "canary" },
      "of the reserved version": { traceparent: traceparent.replace(/^00/, "ff") },
      "in upper case": { traceparent: traceparent.toUpperCase() },
      "without a trace": { traceparent: `00-${"0".repeat(32)}-${callersSpanId}-01` },
      "without a span": { traceparent: `00-${traceId}-${"0".repeat(16)}-01` },
      "too long": { traceparent: `${traceparent}-canary` },
      "sent twice": { traceparent: `${traceparent}, ${traceparent}` },
    };
    const [ingest] = await runBoth();
    const requests = requestsSince();
    for (const [name, sent] of Object.entries(headers)) {
      expect([name, (await post(ingest, { headers: sent })).status]).toEqual([name, 200]);
    }
    await waitFor(() => expect(requests()).toHaveLength(Object.keys(headers).length));
    const traces = requests().map((span) => span.traceId);
    expect(new Set(traces).size).toBe(Object.keys(headers).length);
    expect(traces).not.toContain(traceId);
    expect(requests().filter(({ parentSpanId }) => parentSpanId !== "")).toEqual([]);
  });

  test("is sampled by our ratio, whatever the partner's flag says", async () => {
    const [always] = await runBoth();
    const { traceId, traceparent } = newTrace();
    await post(always, { headers: { traceparent: traceparent.replace(/01$/, "00") } });
    await waitFor(() => expect(spansOf(traceId)).toHaveLength(3));

    const never = { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.0000001" };
    const QUEUE_PREFIX = uniquePrefix();
    const rarely = await shared.start("ingest", { environment: { ...never, QUEUE_PREFIX } });
    for (let n = 0; n < 20; n += 1) await post(rarely, { headers: { traceparent }, reference: `TRIP-${n}` });
    expect(await rarely.stop()).toBe(0);
    expect(spansOf(traceId)).toHaveLength(3);
    const queued = await queuedEnvelopes(QUEUE_PREFIX);
    expect(queued).toHaveLength(20);
    expect(queued.filter((envelope) => "traceparent" in envelope)).toEqual([]);
  });
});

test("a collector that hangs delays no event and no shutdown", async () => {
  const hanging = await startOtlpReceiver();
  hanging.setMode("hang");
  const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: hanging.url, QUEUE_PREFIX: uniquePrefix() };
  const environment = { ...settings, OTEL_BSP_MAX_QUEUE_SIZE: "20", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10" };
  const [ingest, worker] = await Promise.all([
    shared.start("ingest", { environment }),
    shared.start("worker", { environment }),
  ]);
  for (let n = 0; n < 30; n += 1) expect((await post(ingest, { reference: `TRIP-${n}` })).status).toBe(200);
  for (let n = 0; n < 30; n += 1) await untilApplied(`TRIP-${n}`);
  for (const app of [ingest, worker]) {
    expect(await app.stop()).toBe(0);
    expect(app.logLines().filter(({ msg }) => String(msg).startsWith("spans are lost"))).toHaveLength(1);
  }
  await hanging.close();
});

test("a trace tells why an event became a dead letter, and nothing of a partner's text is exported", async () => {
  const canary = (place: string) => `canary7q-${place}`;
  const { traceId, traceparent } = newTrace();
  const headers = {
    traceparent,
    tracestate: `${canary("tracestate")}=1`,
    baggage: `${canary("baggage")}=${canary("baggage-value")}`,
    "Idempotency-Key": canary("key"),
    "User-Agent": canary("user-agent"),
    "X-Request-Id": canary("request-id"),
  };
  const fields = { consumerEmail: `${canary("email")}@example.com`, [canary("name")]: canary("value") };
  const reference = canary("reference");
  const [ingest, worker] = await runBoth();
  const requests = requestsSince();
  expect((await post(ingest, { headers, fields, reference })).status).toBe(200);
  await untilApplied(reference);
  expect((await post(ingest, { headers, fields: { ...fields, consumerPhone: [canary("phone")] } })).status).toBe(422);
  const badKey = { ...headers, "Idempotency-Key": canary("key").repeat(30) };
  expect((await post(ingest, { headers: badKey, fields })).status).toBe(400);
  expect((await post(ingest, { headers, fields, path: canary("secret") })).status).toBe(403);
  await shared.pool.query(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception '%', new.payload using errcode = '22000', detail = new; end $$`);
  await shared.pool.query("create trigger refuse before insert on bookings for each row execute function refuse()");
  expect((await post(ingest, { headers, fields, reference: canary("dead") })).status).toBe(200);
  await waitFor(() => find(spansOf(traceId), "write dead letter"));
  expect(find(spansOf(traceId), "write dead letter").attributes).toMatchObject({ "error.type": "22000" });
  expect(await ingest.stop()).toBe(0);
  expect(await worker.stop()).toBe(0);

  const failed = collector.spans().filter(({ hasFailed }) => hasFailed);
  expect(failed.map(({ name }) => name)).toContain("write");
  expect(find(failed, "apply event")).toMatchObject({ traceId, attributes: { "error.type": "22000" } });
  const statuses = requests().map(({ attributes }) => attributes["http.response.status_code"]);
  // A stranger causes no span.
  expect(statuses.toSorted()).toEqual([200, 200, 400, 422]);
  const exported = Buffer.concat(collector.bodies).toString("latin1");
  expect(exported).toContain("booking_events.partner");
  for (const leak of [secret, "canary", "example.com"]) expect(exported).not.toContain(leak);
  expect(collector.spans().filter(({ traceState }) => traceState !== "")).toEqual([]);
});
