import { createHistogram } from "node:perf_hooks";
import { waitFor } from "@booking-events/harness";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { intervalOfEachShard, type LoadShedder, medianDelayMs, watchLoad } from "./shed-load.ts";

type Load = { backlog: number; memoryShare: number };

const limits = { maxBacklog: 100, memoryHighWater: 0.7, maxEventLoopDelayMs: 250 };
/** High enough that a busy machine does not make tests of the other measures fail. */
const patientLimits = { ...limits, maxEventLoopDelayMs: 60_000 };

/** What Redis reports; an error means that it does not answer. */
let load: Load | Error;
let looks: number;
let shedder: LoadShedder;
let metrics: ReturnType<typeof createMetrics>;
let logged: string[];

beforeEach(() => {
  looks = 0;
  metrics = createMetrics("test");
  logged = [];
});

afterEach(() => shedder.stop());

async function watch(first: Load, inForce = patientLimits): Promise<void> {
  load = first;
  const logger = createLogger({ name: "test", level: "silent" });
  for (const level of ["info", "warn"] as const) vi.spyOn(logger, level).mockImplementation(() => logged.push(level));
  const measureLoad = async () => {
    looks += 1;
    if (load instanceof Error) throw load;
    return load;
  };
  shedder = await watchLoad({ measureLoads: [measureLoad], limits: inForce, logger, metrics });
}

/** Resolves when the new load has been processed. */
async function change(next: Load | Error): Promise<void> {
  load = next;
  const before = looks;
  // The second check from now begins after the first one has been processed.
  await waitFor(() => looks >= before + 2);
}

async function isGaugeSet(measure: string): Promise<boolean> {
  const { values = [] } = (await metrics.getSingleMetric("ingest_shedding")?.get()) ?? {};
  return values.some(({ labels, value }) => labels["measure"] === measure && value === 1);
}

test.each([
  ["maxBacklog", "at most 90 wait", { backlog: 101 }, { backlog: 91 }, { backlog: 90 }],
  ["memoryHighWater", "at most 63 %", { memoryShare: 0.71 }, { memoryShare: 0.64 }, { memoryShare: 0.6 }],
])(
  "%s: events are refused above the limit until the value is well below it",
  async (measure, until, over, stillOver, below) => {
    await watch({ backlog: 0, memoryShare: 0, ...over });
    expect(shedder.isOverloaded()).toBe(true);
    expect(shedder.warnings()).toEqual([expect.stringContaining(until)]);
    expect(await isGaugeSet(measure)).toBe(true);
    await change({ backlog: 0, memoryShare: 0, ...stillOver });
    expect(shedder.isOverloaded()).toBe(true);
    expect(shedder.warnings()).toEqual([expect.stringContaining(until)]);
    await change({ backlog: 0, memoryShare: 0, ...below });
    expect(shedder.isOverloaded()).toBe(false);
    expect(shedder.warnings()).toEqual([]);
    expect(await isGaugeSet(measure)).toBe(false);
    // One log line at the beginning and one at the end, however many checks there were.
    expect(logged).toEqual(["warn", "info"]);
  },
);

test("events are accepted again only when all measures have recovered", async () => {
  await watch({ backlog: 101, memoryShare: 0.71 });
  expect(shedder.warnings()).toHaveLength(2);
  await change({ backlog: 0, memoryShare: 0.71 });
  expect(shedder.isOverloaded()).toBe(true);
  await change({ backlog: 0, memoryShare: 0 });
  expect(shedder.isOverloaded()).toBe(false);
});

test("at the limit nothing is refused", async () => {
  await watch({ backlog: 100, memoryShare: 0.7 });
  expect(shedder.isOverloaded()).toBe(false);
  expect(logged).toEqual([]);
});

test("while Redis does not answer the last result applies, and it is updated when Redis answers", async () => {
  await watch({ backlog: 101, memoryShare: 0 });
  await change(new Error("Redis is out"));
  expect(shedder.isOverloaded()).toBe(true);
  await change({ backlog: 0, memoryShare: 0 });
  expect(shedder.isOverloaded()).toBe(false);
});

test("a process that cannot keep up refuses events until it can", async () => {
  await watch({ backlog: 0, memoryShare: 0 }, limits);
  const isOverloaded = () => {
    const endAtMs = performance.now() + 350;
    while (performance.now() < endAtMs);
    return shedder.isOverloaded();
  };
  // After longer pauses, most turns would be on time.
  await waitFor(isOverloaded, { intervalMs: 20 });
  expect(shedder.warnings()).toEqual([expect.stringContaining("is delayed by at most 225 ms")]);
  expect(await isGaugeSet("maxEventLoopDelayMs")).toBe(true);
  await waitFor(() => !shedder.isOverloaded());
});

test.each([
  ["a pause that has just ended", [3_000], undefined],
  ["one pause and turns on time", [3_000, 20, 20], 0],
  ["turns that all are late", [320, 3_000, 320], 300],
])("%s: a process is late if most turns are, not because of one pause", (_, samplesMs, delayMs) => {
  const delays = createHistogram();
  for (const sampleMs of samplesMs) delays.record(sampleMs * 1_000_000);
  const median = medianDelayMs(delays);
  if (delayMs === undefined) expect(median).toBeUndefined();
  else expect(median).toBeCloseTo(delayMs, 0);
});

test("the limits are exported, so a dashboard or an alert does not have to repeat them", async () => {
  await watch({ backlog: 0, memoryShare: 0 });
  const { values = [] } = (await metrics.getSingleMetric("ingest_shedding_limit")?.get()) ?? {};
  expect(Object.fromEntries(values.map(({ labels, value }) => [labels["measure"], value]))).toEqual(patientLimits);
});

test("the backlogs of all shards count together, and a shard that does not answer delays no other", async () => {
  const { promise: silence } = Promise.withResolvers<Load>();
  let silent: Promise<Load> | undefined;
  let backlog = 40;
  const logger = createLogger({ name: "test", level: "silent" });
  const measureLoads = [
    async () => ({ backlog, memoryShare: 0.1 }),
    () => silent ?? Promise.resolve({ backlog: 50, memoryShare: 0.6 }),
  ];
  shedder = await watchLoad({ measureLoads, limits: patientLimits, logger, metrics });
  expect(shedder.isOverloaded()).toBe(false);
  silent = silence;
  backlog = 51;
  await waitFor(() => shedder.isOverloaded());
  expect(shedder.warnings()).toEqual([expect.stringContaining("101 wait now")]);
});

test("a shard that is full and then stops answering does not keep the others from accepting events", async () => {
  let full: Load | Error = { backlog: 101, memoryShare: 0.9 };
  const measureFull = async () => {
    if (full instanceof Error) throw full;
    return full;
  };
  const measureEmpty = async () => ({ backlog: 0, memoryShare: 0 });
  const logger = createLogger({ name: "test", level: "silent" });
  shedder = await watchLoad({ measureLoads: [measureFull, measureEmpty], limits: patientLimits, logger, metrics });
  expect(shedder.isOverloaded()).toBe(true);
  full = new Error("Redis is out");
  await waitFor(() => !shedder.isOverloaded());
  full = { backlog: 101, memoryShare: 0.9 };
  await waitFor(() => shedder.isOverloaded());
});

test.each([
  { shards: 1, intervalMs: 100 },
  { shards: 2, intervalMs: 200 },
  { shards: 8, intervalMs: 800 },
  { shards: 64, intervalMs: 800 },
  { shards: 128, intervalMs: 1_600 },
  { shards: 1_024, intervalMs: 12_800 },
])("each of $shards shards is measured every $intervalMs ms", ({ shards, intervalMs }) => {
  expect(intervalOfEachShard(shards)).toBe(intervalMs);
});
