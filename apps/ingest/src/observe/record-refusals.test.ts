import type { ObservedRequest } from "@booking-events/http";
import type { RecordedRefusal } from "@booking-events/queue";
import { createMetrics } from "@booking-events/runtime";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRefusalRecorder } from "./record-refusals.ts";

const limits = { intervalMs: 1_000, maxOfSender: 3, maxWaiting: 5 };
const metrics = () => createMetrics("test");

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function refused(more: Partial<ObservedRequest> = {}): ObservedRequest {
  return { requestId: "request-1", partner: "acme", status: 422, outcome: "invalid-data", ip: "192.0.2.1", ...more };
}

function startRecorder(write: (refusals: RecordedRefusal[]) => Promise<void>) {
  const registry = metrics();
  const recorder = createRefusalRecorder({ write, onError: () => {}, metrics: registry, limits });
  return {
    ...recorder,
    async dropped() {
      const { values = [] } = (await registry.getSingleMetric("ingest_refusals_dropped_total")?.get()) ?? {};
      return Object.fromEntries(values.map(({ labels, value }) => [labels["reason"], value]));
    },
  };
}

test("refusals are written together, with nothing that the sender wrote", async () => {
  const calls: RecordedRefusal[][] = [];
  const recorder = startRecorder(async (refusals) => void calls.push(refusals));
  const violations = Array.from({ length: 50 }, () => ({ field: "consumerPhone", rule: "null" as const }));
  recorder.record(refused({ kind: "create", secretId: "s1", violations }));
  recorder.record(refused({ partner: undefined, status: 403, outcome: "unknown-secret", ip: undefined }));
  for (const answered of [{ status: 200 }, { status: undefined }]) recorder.record(refused(answered));
  expect(calls).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(calls).toEqual([
    [
      {
        requestId: "request-1",
        at: expect.any(Date),
        partner: "acme",
        secretId: "s1",
        kind: "create",
        status: 422,
        code: "invalid-data",
        violations: Array(10).fill("consumerPhone:null"),
        ip: "192.0.2.1",
      },
      {
        requestId: "request-1",
        at: expect.any(Date),
        partner: null,
        secretId: null,
        kind: null,
        status: 403,
        code: "unknown-secret",
        violations: [],
        ip: null,
      },
    ],
  ]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(calls).toHaveLength(1);
});

test("a flood of one sender leaves room for others, and what is too much is counted", async () => {
  const calls: RecordedRefusal[][] = [];
  const recorder = startRecorder(async (refusals) => void calls.push(refusals));
  for (let i = 0; i < 100; i += 1) recorder.record(refused());
  recorder.record(refused({ partner: "zenith" }));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(calls[0]?.map(({ partner }) => partner)).toEqual(["acme", "acme", "acme", "zenith"]);
  expect(await recorder.dropped()).toEqual({ "too-many": 97, redis: 0 });
  recorder.record(refused());
  await recorder.stop();
  expect(calls[1]).toHaveLength(1);
});

test("while Redis does not answer, memory is bounded and no request waits", async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  let writes = 0;
  const recorder = startRecorder(() => {
    writes += 1;
    return promise;
  });
  recorder.record(refused());
  await vi.advanceTimersByTimeAsync(10_000);
  for (let i = 0; i < 100; i += 1) recorder.record(refused({ partner: `partner-${i}` }));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(writes).toBe(1);
  expect(await recorder.dropped()).toEqual({ "too-many": 95, redis: 0 });
  reject(new Error("no answer"));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await recorder.dropped()).toEqual({ "too-many": 95, redis: 6 });
  await recorder.stop();
});
