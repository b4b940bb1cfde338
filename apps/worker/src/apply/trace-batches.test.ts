import { randomUUID } from "node:crypto";
import type { Outcome } from "@booking-events/bookings";
import { type OtlpReceiver, startOtlpReceiver } from "@booking-events/harness/otlp-receiver";
import { sampleEvent } from "@booking-events/harness/sample-event";
import { createLogger, createTracing, type Span, type Tracing } from "@booking-events/runtime";
import type { EventEnvelope } from "@booking-events/schema";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { traceBatch } from "./trace-batches.ts";

let collector: OtlpReceiver;
let tracing: Tracing;
let logLines: string[];

beforeEach(async () => {
  collector = await startOtlpReceiver();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  // OpenTelemetry's exporter reads the process's own environment.
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
  logLines = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => void logLines.push(line) });
  tracing = (await createTracing({ serviceName: "test", environment, shutdownTimeoutMs: 60_000, logger })) as Tracing;
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await collector.close();
});

function toTraceparent(trace: number): string {
  return `00-${String(trace).padStart(32, "0")}-00f067aa0ba902b7-01`;
}

function envelope(traceparent: string | null): EventEnvelope {
  const payload = { consumerPartnerExternalReference: "canary" };
  return sampleEvent(0, { eventId: randomUUID(), traceparent, payload });
}

async function exportedSpans(name: string) {
  await tracing.shutdown();
  return collector.spans().filter((span) => span.name === name);
}

test("each sampled event of a batch is traced, and the batch has links to the first 128 of them", async () => {
  const sampled = Array.from({ length: 200 }, (_, index) => envelope(toTraceparent(index + 1)));
  const envelopes = [envelope(null), ...sampled];
  const outcomes = new Map<string, Outcome>(envelopes.map(({ eventId }) => [eventId, "created"]));
  await traceBatch(tracing, envelopes, async () => outcomes);
  const events = await exportedSpans("apply event");
  expect(events.map(({ traceId }) => Number(traceId))).toEqual(sampled.map((_, index) => index + 1));
  expect(new Set(events.map(({ attributes }) => attributes["booking_events.outcome"]))).toEqual(new Set(["created"]));
  const [batch] = await exportedSpans("apply batch");
  expect(batch?.attributes).toMatchObject({ "messaging.batch.message_count": 201 });
  expect(batch?.links.map(({ traceId }) => Number(traceId))).toEqual(Array.from({ length: 128 }, (_, at) => at + 1));
  // Links that OpenTelemetry itself leaves out would be reported as losses.
  expect(logLines).toEqual([]);
});

test("an event that is left out of its transaction has the outcome left-out", async () => {
  const envelopes = [envelope(toTraceparent(1)), envelope(toTraceparent(2))];
  const applied = new Map<string, Outcome>([[String(envelopes[0]?.eventId), "updated"]]);
  expect(await traceBatch(tracing, envelopes, async () => applied)).toBe(applied);
  const outcomes = (await exportedSpans("apply event")).map(({ attributes }) => attributes["booking_events.outcome"]);
  expect(outcomes).toEqual(["updated", "left-out"]);
});

test("a batch that fails has the error's code, and not its message", async () => {
  const error = Object.assign(new Error("canary"), { code: "22000", detail: "canary" });
  const fail = () => Promise.reject(error);
  await expect(traceBatch(tracing, [envelope(toTraceparent(1))], fail)).rejects.toBe(error);
  for (const name of ["apply batch", "apply event"]) {
    const [span] = await exportedSpans(name);
    expect(span).toMatchObject({ hasFailed: true, attributes: { "error.type": "22000" } });
  }
  expect(Buffer.concat(collector.bodies).toString("latin1")).not.toContain("canary");
});

test("a batch without sampled events is not traced", async () => {
  const spans: (Span | undefined)[] = [];
  await traceBatch(tracing, [envelope(null)], async (span) => {
    spans.push(span);
    return new Map();
  });
  expect(spans).toEqual([undefined]);
  await tracing.shutdown();
  expect(collector.connectionCount()).toBe(0);
});
