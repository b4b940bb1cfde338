import { expect, test } from "vitest";
import { measureStrikes } from "./measure-strikes.ts";
import type { Attempt, Post } from "./post-events.ts";

const refused: Attempt["end"] = { result: "refused" };
const acknowledged: Attempt["end"] = { result: "acknowledged", eventId: "1" };

function post(reference: string, ...attempts: [sentAtMs: number, endedAtMs: number, end: Attempt["end"]][]): Post {
  return {
    partner: "acme",
    kind: "create",
    reference,
    payload: {},
    idempotencyKey: null,
    attempts: attempts.map(([sentAtMs, endedAtMs, end]) => ({ sentAtMs, endedAtMs, end })),
  };
}

const strike = { name: "it freezes", startedAtMs: 1_000, endedAtMs: 9_000 };

test("a refusal lasts until an event of the same shard is accepted that was sent later", () => {
  const posts = [
    post("a", [500, 700, refused], [1_500, 1_600, refused], [4_000, 4_100, acknowledged]),
    post("b", [900, 3_000, acknowledged]),
    // Of another shard.
    post("c", [2_000, 2_100, acknowledged], [8_000, 8_100, refused], [9_500, 9_700, acknowledged]),
  ];
  const [single] = measureStrikes([strike], posts, [], 1);
  expect(single?.longestRefusalMs).toBe(1_700);
  const [sharded] = measureStrikes([strike], posts, [], 8);
  expect(sharded?.longestRefusalMs).toBe(2_600);
});

test("a pause is the longest time within a fault in which nothing was applied", () => {
  const report = measureStrikes([strike, { ...strike, startedAtMs: 20_000, endedAtMs: 21_000 }], [], [2_000, 8_000], 1);
  expect(report).toEqual([{ name: "it freezes", count: 2, longestRefusalMs: 0, longestPauseMs: 6_000 }]);
});
