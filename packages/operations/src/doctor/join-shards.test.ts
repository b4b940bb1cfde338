import type { RedisExamination } from "@booking-events/queue";
import { expect, test } from "vitest";
import { joinShards } from "./join-shards.ts";

const clock = (clockAheadMs: number) => ({ value: { clockAheadMs, clockErrorMs: 0.5 } as RedisExamination });
const check = (detail: string) => ({ name: "Redis keeps events", state: "ok" as const, detail, why: "", remedy: null });

test("what is the same for all shards is shown once, and everything else with the numbers of the shards", () => {
  const examinations = [0, 1, 2, 3].map((shard) => ({ shard, ...clock(0) }));
  const checks = [[check("a"), check("b")], [check("a")], [check("a")], [check("a"), check("b")]];
  expect(joinShards(checks, examinations).map(({ detail }) => detail)).toEqual([
    "a",
    "shards 0, 3: b",
    "0.0 ms apart, measured to within 1.0 ms",
  ]);
  expect(joinShards([[check("a")]], [{ shard: 0, ...clock(0) }])).toEqual([check("a")]);
});

test.each([
  [100, "ok"],
  [102, "problem"],
])("clocks that are %d ms apart: %s", (aheadMs, state) => {
  const examinations = [
    { shard: 0, ...clock(-20) },
    { shard: 1, error: new Error("down") },
    { shard: 2, ...clock(aheadMs - 20) },
  ];
  expect(joinShards([[], [], []], examinations)).toMatchObject([
    { name: "The clocks of the shards agree", state, detail: expect.stringContaining(`${aheadMs}.0 ms apart`) },
  ]);
});
