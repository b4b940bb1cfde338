import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { companionPrefix } from "../shards/shards.ts";
import { addFieldCounts, type FieldCount, readFieldCounts, readWarningCounts } from "./field-counts.ts";

const redis = new Redis(redisUrl());
const prefix = uniquePrefix();
const now = new Date("2026-11-22T00:30:00Z");

afterAll(async () => {
  const keys = await redis.keys(`${prefix.replaceAll(/[[\]*?]/g, "\\$&")}:*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
});

const read = (partner: string, at = now) =>
  readWarningCounts({ redisServers: redisUrl(), prefix, partners: [partner], now: at });
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const phone: FieldCount = {
  ...{ partner: "acme", day: "2026-11-22", field: "consumerPhone", code: "unreadable-phone", count: 1 },
  ...{ firstAt: new Date("2026-11-22T00:10:00Z"), lastAt: new Date("2026-11-22T00:20:00Z"), lastEventId: eventId },
};

test("counts of a partner and day add up, whoever adds them", async () => {
  const name = { ...phone, field: "consumerGivenName", code: "similar-name" };
  await addFieldCounts(redis, prefix, "warnings", [
    phone,
    { ...name, count: 3 },
    { ...phone, day: "2026-11-21", count: 40 },
  ]);
  await addFieldCounts(redis, prefix, "warnings", [
    { ...phone, count: 5 },
    { ...phone, partner: "other", count: 7 },
  ]);

  const expected: FieldCount[] = [
    { ...phone, count: 6 },
    { ...name, count: 3 },
    { ...phone, day: "2026-11-21", count: 40 },
  ];
  expect(await read("acme")).toEqual(expected);
  expect(await read("other")).toEqual([{ ...phone, partner: "other", count: 7 }]);
  expect(await read("nobody")).toEqual([]);
});

test("the first and the last time of a day are kept, and the last event, whoever adds them", async () => {
  const noKey = { ...phone, partner: "zenith", field: "", code: "empty-key" };
  const later = { firstAt: new Date("2026-11-22T00:25:00Z"), lastAt: new Date("2026-11-22T00:26:00Z") };
  await addFieldCounts(redis, prefix, "warnings", [noKey]);
  await addFieldCounts(redis, prefix, "warnings", [{ ...noKey, ...later, lastEventId: null }]);
  expect(await read("zenith")).toEqual([{ ...noKey, count: 2, lastAt: later.lastAt }]);
});

test("several partners are read at once, newest day first", async () => {
  await addFieldCounts(redis, prefix, "warnings", [
    { ...phone, partner: "one" },
    { ...phone, partner: "two", day: "2026-11-21" },
    { ...phone, partner: "two" },
  ]);
  const counts = await readWarningCounts({ redisServers: redisUrl(), prefix, partners: ["two", "one", "none"], now });
  expect(counts.map(({ partner, day }) => `${partner} ${day}`)).toEqual([
    ...["two 2026-11-22", "one 2026-11-22", "two 2026-11-21"],
  ]);
});

test("seven days are read, and every hash expires", async () => {
  expect(await read("acme", new Date("2026-11-28T23:59:59Z"))).toHaveLength(2);
  expect(await read("acme", new Date("2026-11-29T00:00:00Z"))).toEqual([]);
  for (const key of await redis.keys(`${companionPrefix(prefix, "records")}:warnings:*`)) {
    const leftMs = await redis.pttl(key);
    expect(leftMs).toBeGreaterThan(6.9 * 24 * 3_600_000);
    expect(leftMs).toBeLessThanOrEqual(7 * 24 * 3_600_000);
  }
});

test("violations are counted apart from warnings", async () => {
  const missing = { ...phone, field: "payload", code: "not-an-object" };
  await addFieldCounts(redis, prefix, "violations", [{ ...missing, partner: "apart" }]);
  const of = { partners: ["apart"], days: ["2026-11-22", "2026-11-21"] };
  expect(await readFieldCounts(redis, prefix, "violations", of)).toEqual([{ ...missing, partner: "apart" }]);
  expect(await readFieldCounts(redis, prefix, "warnings", of)).toEqual([]);
});

test("nothing to add is nothing to do, and an error of one command is thrown", async () => {
  await addFieldCounts(redis, prefix, "warnings", []);
  await redis.set(`${companionPrefix(prefix, "records")}:warnings:broken:2026-11-22`, "not a hash");
  await expect(addFieldCounts(redis, prefix, "warnings", [phone, { ...phone, partner: "broken" }])).rejects.toThrow(
    "WRONGTYPE",
  );
});
