import type { FieldCount } from "@booking-events/queue";
import { createMetrics } from "@booking-events/runtime";
import { type FieldWarning, findWarnings } from "@booking-events/schema";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createWarningRecorder } from "./record-warnings.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-22T23:59:59.500Z") });
});
afterEach(() => {
  vi.useRealTimers();
});

const ofPhone = (field: FieldWarning["field"] = "consumerPhone"): FieldWarning => {
  return { message: "…", code: "unreadable-phone", propertyPath: [field], field };
};
const phone = { partner: "acme", day: "2026-11-22", field: "consumerPhone", code: "unreadable-phone" };
const now = new Date("2026-11-22T23:59:59.500Z");
const once = { firstAt: now, lastAt: now, lastEventId: "event-1" };

function startRecorder(write: (counts: FieldCount[]) => Promise<void>, maxWaiting = 500) {
  const registry = createMetrics("test");
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const limits = { intervalMs: 1_000, maxWaiting };
  return {
    ...createWarningRecorder({ write, onError, metrics: registry, limits }),
    errors,
    async series(name = "ingest_warnings_total") {
      const { values = [] } = (await registry.getSingleMetric(name)?.get()) ?? {};
      return values.map(({ labels: { process: _, ...labels }, value }) => ({ ...labels, value }));
    },
  };
}

test("warnings are counted in the metrics at once, and by day in Redis, together", async () => {
  const calls: FieldCount[][] = [];
  const recorder = startRecorder(async (counts) => void calls.push(counts));
  recorder.record("acme", "event-1", [ofPhone(), ofPhone("agentPhoneNumber")]);
  await vi.advanceTimersByTimeAsync(100);
  recorder.record("acme", "event-2", [ofPhone()]);
  await vi.advanceTimersByTimeAsync(100);
  recorder.record("acme", null, [ofPhone()]);
  recorder.record("other", "event-3", []);
  expect(calls).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(calls).toEqual([
    [
      { ...phone, count: 3, firstAt: now, lastAt: new Date(now.getTime() + 200), lastEventId: "event-2" },
      { ...phone, field: "agentPhoneNumber", count: 1, ...once },
    ],
  ]);
  recorder.record("acme", null, [ofPhone()]);
  await recorder.stop();
  expect(calls[1]).toMatchObject([{ ...phone, day: "2026-11-23", count: 1, lastEventId: null }]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(calls).toHaveLength(2);
  expect(await recorder.series()).toEqual([
    { partner: "acme", field: "consumerPhone", code: "unreadable-phone", value: 4 },
    { partner: "acme", field: "agentPhoneNumber", code: "unreadable-phone", value: 1 },
  ]);
  expect(await recorder.series("ingest_warned_events_total")).toEqual([{ partner: "acme", value: 4 }]);
});

test("names that the partner chose are in neither: the field that was meant is", async () => {
  const calls: FieldCount[][] = [];
  const recorder = startRecorder(async (counts) => void calls.push(counts));
  const names = ["canary_consumer_phone", "CONSUMER_phone", "consumer-phone", "consumerPhoen"];
  for (const name of names) {
    recorder.record(
      "acme",
      "event-1",
      findWarnings("create", { consumerTripPartnerExternalReference: "T-1", [name]: "canary" }),
    );
  }
  await recorder.stop();
  expect(calls).toEqual([[{ ...phone, code: "similar-name", count: 3, ...once }]]);
  expect(await recorder.series()).toHaveLength(1);
});

test("while Redis is slow, counts wait up to a limit, and a failed write is not repeated", async () => {
  const writes = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const calls: FieldCount[][] = [];
  const recorder = startRecorder((counts) => {
    calls.push(counts);
    return writes[calls.length - 1]?.promise ?? Promise.resolve();
  }, 2);
  recorder.record("acme", "event-1", [ofPhone()]);
  await vi.advanceTimersByTimeAsync(1_000);
  for (const partner of ["b", "c", "d", "b"]) recorder.record(partner, "event-2", [ofPhone()]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(calls).toHaveLength(1);
  writes[0]?.reject(new Error("Redis is down"));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(recorder.errors).toHaveLength(1);
  expect(calls[1]?.map(({ partner, count }) => [partner, count])).toEqual([
    ["b", 2],
    ["c", 1],
  ]);
  writes[1]?.resolve();
  await recorder.stop();
  expect(calls).toHaveLength(2);
  // The metrics miss nothing.
  expect((await recorder.series()).map(({ value }) => value)).toEqual([1, 2, 1, 1]);
});
