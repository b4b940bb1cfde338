import { describe, expect, test } from "vitest";
import { findDurabilityProblems, findRunWithCompleteAof } from "./durability.ts";

/** The relevant lines of INFO from Redis 7.0.15, and some others. */
const fit = {
  redis_version: "7.0.15",
  redis_mode: "standalone",
  run_id: "a-run",
  maxmemory_policy: "noeviction",
  loading: "0",
  aof_enabled: "1",
  aof_rewrite_in_progress: "0",
  aof_rewrite_scheduled: "0",
  aof_last_bgrewrite_status: "ok",
  aof_last_write_status: "ok",
  aof_base_size: "139",
  role: "master",
};
const fitConfig = { appendfsync: "always", "no-appendfsync-on-rewrite": "no" };

function find(info: Partial<typeof fit>, config: Partial<typeof fitConfig> | null = {}): string[] {
  return findDurabilityProblems(factsOf(info, config));
}

function factsOf(info: Partial<typeof fit>, config: Partial<typeof fitConfig> | null = {}) {
  const lines = Object.entries({ ...fit, ...info }).map(([name, value]) => `${name}:${value}`);
  return {
    info: ["# Everything", ...lines, ""].join("\r\n"),
    config: config === null ? null : new Map(Object.entries({ ...fitConfig, ...config })),
  };
}

test("a primary that syncs each write and evicts nothing is durable", () => {
  expect(find({})).toEqual([]);
});

test.each<[string, Partial<typeof fit>, string]>([
  ["a replica", { role: "slave" }, "Redis is a read-only replica"],
  ["one that could not write its append-only file", { aof_last_write_status: "err" }, "could not write"],
  ["one without an append-only file", { aof_enabled: "0" }, "Set: appendonly yes"],
  [
    "one that is writing its first append-only file",
    { aof_rewrite_in_progress: "1", aof_base_size: "0" },
    "first append-only file",
  ],
  [
    "one that has scheduled its first append-only file",
    { aof_rewrite_scheduled: "1", aof_base_size: "0" },
    "first append-only file",
  ],
  ["one that is loading its data", { loading: "1" }, "is loading"],
  ["one that evicts the least used keys", { maxmemory_policy: "allkeys-lfu" }, "Set: maxmemory-policy noeviction"],
  ["one that is too old", { redis_version: "6.0.20" }, "older than 6.2"],
  ["one that does not report its version", { redis_version: "" }, "older than 6.2"],
])("%s is not", (_, info, problem) => {
  expect(find(info)).toEqual([expect.stringContaining(problem)]);
});

test.each<[keyof typeof fitConfig, string]>([
  ["appendfsync", "everysec"],
  ["appendfsync", "no"],
  ["no-appendfsync-on-rewrite", "yes"],
])("neither is one with %s %s", (name, value) => {
  expect(find({}, { [name]: value })).toEqual([expect.stringMatching(new RegExp(`Set: ${name} \\w+\\.$`))]);
});

describe("not a problem", () => {
  test.each<[string, Partial<typeof fit>]>([
    ["a rewrite of a file that is in use", { aof_rewrite_in_progress: "1" }],
    ["a server that was empty at its start", { aof_base_size: "0" }],
    ["a failed rewrite, after which the old file is still in use", { aof_last_bgrewrite_status: "err" }],
    ["the oldest supported version", { redis_version: "6.2.0" }],
    ["a newer one", { redis_version: "8.0.1" }],
  ])("%s", (_, info) => {
    expect(find(info)).toEqual([]);
  });

  test("a Redis that forbids CONFIG, if INFO shows no problem", () => {
    expect(find({}, null)).toEqual([]);
    expect(find({ role: "slave" }, null)).toHaveLength(1);
  });
});

describe("the first rewrite of a server that was empty at its start", () => {
  const before = factsOf({ aof_base_size: "0" });
  const rewriting = factsOf({ aof_base_size: "0", aof_rewrite_in_progress: "1" });

  test("is not a problem, because its file was complete before", () => {
    const known = findRunWithCompleteAof(before, undefined);
    expect(findDurabilityProblems(rewriting, { runWithCompleteAof: known })).toEqual([]);
    expect(findDurabilityProblems(rewriting, { runWithCompleteAof: findRunWithCompleteAof(rewriting, known) })).toEqual(
      [],
    );
  });

  test("is a problem if that is unknown, for another process, and after the file was disabled", () => {
    const switchedOff = findRunWithCompleteAof(factsOf({ aof_enabled: "0" }), "a-run");
    for (const known of [findRunWithCompleteAof(rewriting, undefined), "another-run", switchedOff])
      expect(findDurabilityProblems(rewriting, { runWithCompleteAof: known })).toEqual([
        expect.stringContaining("first append-only file"),
      ]);
  });
});

test("all problems are reported together", () => {
  expect(find({ role: "slave", aof_enabled: "0" }, { appendfsync: "no" })).toHaveLength(3);
});

test("replicas that must confirm each event are counted only if they have all data and answer", () => {
  const { info } = factsOf({});
  const replicas = ["state=online,offset=7,lag=0", "state=online,offset=3,lag=9", "state=send_bulk,offset=0,lag=0"];
  const lines = replicas.map((state, index) => `slave${index}:ip=10.0.0.${index},port=6379,${state}\r\n`).join("");
  const find = (replicasToConfirm: number) =>
    findDurabilityProblems({ info: `${info}\r\n${lines}`, config: null }, { replicasToConfirm });
  expect(find(1)).toEqual([]);
  expect(find(2)).toEqual([expect.stringMatching(/^Redis has 1 replicas that follow it, but 2 must/)]);
});
