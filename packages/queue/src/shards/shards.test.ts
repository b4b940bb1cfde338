import { expect, test } from "vitest";
import { digestSubject, testSuffix } from "../events/event-subject.ts";
import { companionPrefix, formatShards, namingShards, shardOf, shardPrefix, shardsOf } from "./shards.ts";

const subjects = Array.from({ length: 4_096 }, (_, number) =>
  digestSubject({ partner: "acme", payload: { consumerTripPartnerExternalReference: `TRIP-${number}` } }),
);

test("the first shard has the queue's prefix, and everything else has a hash tag of its own", () => {
  expect(shardPrefix("{booking-events}", 0)).toBe("{booking-events}");
  expect(shardPrefix("{booking-events}", 17)).toBe("{booking-events-17}");
  expect(companionPrefix("{booking-events}", "limits")).toBe("{booking-events-limits}");
});

test.each([
  [1, false],
  [2, false],
  [8, false],
  [8, true],
  [1_024, false],
])("bookings are spread evenly over %i shards (of a test partner: %s)", (shardCount, isTest) => {
  const events = new Map<number, number>();
  for (const subject of subjects) {
    const shard = shardOf(isTest ? `${subject}${testSuffix}` : subject, shardCount);
    events.set(shard, (events.get(shard) ?? 0) + 1);
  }
  const mean = subjects.length / shardCount;
  for (const shard of events.keys()) expect(shard).toBeLessThan(shardCount);
  // Six standard deviations.
  for (const count of events.values()) expect(Math.abs(count - mean)).toBeLessThanOrEqual(6 * Math.sqrt(mean));
  expect(events.size).toBeGreaterThan(0.9 * shardCount);
});

test("a booking is in one of at most 11 shards, whatever the number of shards is or was", () => {
  const exceptions = subjects.filter((subject) => {
    const shards = shardsOf(subject, 1_024);
    const hasAll = [1, 2, 4, 64, 1_024].every((shardCount) => shards.includes(shardOf(subject, shardCount)));
    return shards.length > 11 || !hasAll || Math.max(...shardsOf(subject, 8)) >= 8;
  });
  expect(exceptions).toEqual([]);
});

test("shards are named in ranges, and together if they have the same problem", () => {
  expect(formatShards([7, 0, 1, 2, 5])).toBe("0-2, 5, 7");
  expect(
    namingShards([
      [0, ["Redis is down."]],
      [1, []],
      [2, ["Redis is down.", "It is late."]],
    ]),
  ).toEqual(["Shards 0, 2: Redis is down.", "Shard 2: It is late."]);
});
