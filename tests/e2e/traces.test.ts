import { waitFor } from "@booking-events/harness";
import { type ExportedSpan, type OtlpReceiver, startOtlpReceiver } from "@booking-events/harness/otlp-receiver";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { postEvent } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const surroundings = prepareSurroundings(secret);
const start: ReturnType<typeof surroundings>["start"] = (...settings) => surroundings().start(...settings);

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const callersSpanId = "00f067aa0ba902b7";
/** OpenTelemetry reads the time of day again for each span, in milliseconds. */
const clockPrecisionMs = 1.1;
const traceparent = `00-${traceId}-${callersSpanId}-01`;

let collector: OtlpReceiver;
/** What both processes have in their environment. */
let environment: Record<string, string>;

beforeEach(async () => {
  collector = await startOtlpReceiver();
  environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50" };
});
afterEach(() => collector.close());

function startBoth(more: Record<string, string> = {}): Promise<[RunningApp, RunningApp]> {
  const options = { environment: { ...environment, ...more } };
  return Promise.all([start("ingest", options), start("worker", options)]);
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

function find(spans: ExportedSpan[], name: string): ExportedSpan {
  const span = spans.find((candidate) => candidate.name === name);
  if (span === undefined) throw new Error(`No span ${name} among ${spans.map((other) => other.name).join(", ")}`);
  return span;
}

async function untilApplied(reference = "TRIP-1"): Promise<void> {
  await waitFor(async () => {
    const { rows } = await surroundings().pool.query("select state from bookings where reference = $1", [reference]);
    expect(rows).toEqual([{ state: "active" }]);
  });
}

/** The envelopes that wait in Redis. */
async function queuedEnvelopes(): Promise<Record<string, unknown>[]> {
  const { REDIS_URL = "", QUEUE_PREFIX = "" } = surroundings().environment;
  const redis = new Redis(REDIS_URL);
  try {
    const ids = await redis.lrange(`${QUEUE_PREFIX}:events:wait`, 0, -1);
    const texts = await Promise.all(ids.map((id) => redis.hget(`${QUEUE_PREFIX}:events:${id}`, "data")));
    return texts.map((text) => JSON.parse(text ?? ""));
  } finally {
    redis.disconnect();
  }
}

describe("one trace", () => {
  test("continues the partner's and leads from the POST to the commit", async () => {
    const [ingest] = await startBoth();
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

    const batch = find(collector.spans(), "apply batch");
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
    const ingest = await start("ingest", { environment });
    for (const [name, sent] of Object.entries(headers)) {
      expect([name, (await post(ingest, { headers: sent })).status]).toEqual([name, 200]);
    }
    await waitFor(() => expect(collector.spans()).toHaveLength(2 * Object.keys(headers).length));
    const requests = collector.spans().filter(({ kind }) => kind === "server");
    const traces = requests.map((span) => span.traceId);
    expect(new Set(traces).size).toBe(Object.keys(headers).length);
    expect(traces).not.toContain(traceId);
    expect(requests.filter(({ parentSpanId }) => parentSpanId !== "")).toEqual([]);
  });

  test("is sampled by our ratio, whatever the partner's flag says", async () => {
    const always = await start("ingest", { environment });
    await post(always, { headers: { traceparent: traceparent.replace(/01$/, "00") } });
    await waitFor(() => expect(spansOf(traceId)).toHaveLength(2));

    const never = { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.0000001" };
    const rarely = await start("ingest", { environment: { ...environment, ...never } });
    for (let n = 0; n < 20; n += 1) await post(rarely, { headers: { traceparent }, reference: `TRIP-${n}` });
    expect(await rarely.stop()).toBe(0);
    expect(spansOf(traceId)).toHaveLength(2);
    expect((await queuedEnvelopes()).filter((envelope) => "traceparent" in envelope)).toHaveLength(1);
  });
});

test("a trace tells why an event became a dead letter, and nothing of a partner's text is exported", async () => {
  const canary = (place: string) => `canary7q-${place}`;
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
  const { pool } = surroundings();
  const [ingest, worker] = await startBoth();
  expect((await post(ingest, { headers, fields, reference })).status).toBe(200);
  await untilApplied(reference);
  expect((await post(ingest, { headers, fields: { ...fields, consumerPhone: [canary("phone")] } })).status).toBe(422);
  const badKey = { ...headers, "Idempotency-Key": canary("key").repeat(30) };
  expect((await post(ingest, { headers: badKey, fields })).status).toBe(400);
  expect((await post(ingest, { headers, fields, path: canary("secret") })).status).toBe(403);
  await pool.query(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception '%', new.payload using errcode = '22000', detail = new; end $$`);
  await pool.query("create trigger refuse before insert on bookings for each row execute function refuse()");
  expect((await post(ingest, { headers, fields, reference: canary("dead") })).status).toBe(200);
  await waitFor(() => find(spansOf(traceId), "write dead letter"));
  expect(find(spansOf(traceId), "write dead letter").attributes).toMatchObject({ "error.type": "22000" });
  expect(await ingest.stop()).toBe(0);
  expect(await worker.stop()).toBe(0);

  const failed = collector.spans().filter(({ hasFailed }) => hasFailed);
  expect(failed.map(({ name }) => name)).toContain("write");
  expect(find(failed, "apply event")).toMatchObject({ traceId, attributes: { "error.type": "22000" } });
  const statuses = collector.spans().map(({ attributes }) => attributes["http.response.status_code"]);
  // A stranger causes no span.
  expect(statuses.filter((status) => status !== undefined).toSorted()).toEqual([200, 200, 400, 422]);
  const exported = Buffer.concat(collector.bodies).toString("latin1");
  expect(exported).toContain("booking_events.partner");
  for (const leak of [secret, "canary", "example.com"]) expect(exported).not.toContain(leak);
  expect(collector.spans().filter(({ traceState }) => traceState !== "")).toEqual([]);
});

describe("OpenTelemetry is", () => {
  /** Prints each module of OpenTelemetry that the process loads. prom-client loads OpenTelemetry's interfaces. */
  const printModules = `import { registerHooks } from "node:module";
    registerHooks({
      resolve(specifier, context, next) {
        const result = next(specifier, context);
        if (/\\/@opentelemetry\\/(?!api\\/)/.test(result.url)) console.log(result.url);
        return result;
      },
    });`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(printModules)}`;

  test.each([
    // What else switches it off is in the tests of createTracing.
    ["by default", {}],
    ["by OTEL_SDK_DISABLED", { OTEL_SDK_DISABLED: "TRUE" }],
  ])("off %s: it is not loaded, and nothing is exported or added to an event", async (name, settings) => {
    const endpoint = name === "by default" ? {} : environment;
    const ingest = await start("ingest", { environment: { ...endpoint, ...settings, NODE_OPTIONS } });
    await post(ingest, { headers: { traceparent } });
    expect((await queuedEnvelopes()).map((envelope) => "traceparent" in envelope)).toEqual([false]);
    const worker = await start("worker", { environment: { ...endpoint, ...settings, NODE_OPTIONS } });
    await untilApplied();
    for (const app of [ingest, worker]) {
      expect(await app.stop()).toBe(0);
      expect(app.output()).not.toContain("@opentelemetry");
    }
    expect(collector.connectionCount()).toBe(0);
  });

  test("on by an endpoint alone", async () => {
    const ingest = await start("ingest", { environment: { ...environment, NODE_OPTIONS } });
    await post(ingest);
    expect((await queuedEnvelopes()).map((envelope) => "traceparent" in envelope)).toEqual([true]);
    await waitFor(() => expect(ingest.output()).toContain("/@opentelemetry/sdk-trace/"));
    await waitFor(() => expect(collector.spans()).toHaveLength(2));
  });
});

describe("a collector that is down or hangs", () => {
  test.each(["hangs", "is down", "refuses"])("delays no event and no shutdown if it %s", async (state) => {
    if (state === "hangs") collector.setMode("hang");
    else if (state === "refuses") collector.setMode("refuse");
    else await collector.close();
    const [ingest, worker] = await startBoth({ OTEL_BSP_MAX_QUEUE_SIZE: "20", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10" });
    for (let n = 0; n < 30; n += 1) expect((await post(ingest, { reference: `TRIP-${n}` })).status).toBe(200);
    for (let n = 0; n < 30; n += 1) await untilApplied(`TRIP-${n}`);
    expect(await ingest.stop()).toBe(0);
    expect(await worker.stop()).toBe(0);
    for (const app of [ingest, worker]) {
      const lines = app.logLines().filter(({ msg }) => String(msg).startsWith("spans are lost"));
      expect(lines).toHaveLength(1);
    }
  });
});
