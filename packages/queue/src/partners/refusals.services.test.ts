import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import { companionPrefix } from "../shards/shards.ts";
import { type RecordedRefusal, readRefusals, refusalLimits, writeRefusals } from "./refusals.ts";

const redis = new Redis(redisUrl());
let prefix: string;

beforeEach(() => {
  prefix = uniquePrefix();
});

afterAll(() => redis.disconnect());

const nowMs = Date.now();

function refusal(number: number, more: Partial<RecordedRefusal> = {}): RecordedRefusal {
  return {
    requestId: `request-${number}`,
    at: new Date(nowMs - 60_000 + number),
    partner: "acme",
    secretId: "s1",
    kind: "create",
    status: 422,
    code: "invalid-data",
    violations: ["consumerPhone:null"],
    ip: "192.0.2.1",
    ...more,
  };
}

function read(more: Partial<Parameters<typeof readRefusals>[0]> = {}): Promise<RecordedRefusal[]> {
  return readRefusals({ redisServers: redisUrl(), prefix, since: new Date(0), ...more });
}

test("refusals are read as they were written, newest first, by partner and since a time", async () => {
  const stranger = refusal(2, { partner: null, secretId: null, status: 403, code: "unknown-secret", violations: [] });
  const written = [refusal(1), stranger, refusal(3, { partner: "zenith" })];
  await writeRefusals(redis, prefix, written);
  expect(await read()).toEqual(written.toReversed());
  expect(await read({ partner: "acme" })).toEqual([written[0]]);
  expect(await read({ partner: null })).toEqual([stranger]);
  expect(await read({ since: new Date(nowMs - 60_000 + 2) })).toEqual([written[2], stranger]);
  expect(await read({ partner: "unheard-of" })).toEqual([]);
});

test("a flood of one sender, or of strangers, takes a bounded part of Redis, and displaces nobody else's", async () => {
  await writeRefusals(redis, prefix, [refusal(0, { partner: "zenith" })]);
  for (const partner of ["acme", null]) {
    const many = Array.from({ length: 2 * refusalLimits.maxStored }, (_, number) => refusal(number, { partner }));
    await writeRefusals(redis, prefix, many);
    const left = await read({ partner });
    expect(left).toHaveLength(refusalLimits.maxStored);
    expect(left[0]).toEqual(many.at(-1));
  }
  expect(await read({ partner: "zenith" })).toHaveLength(1);
  const bytes = await redis.memory("USAGE", `${companionPrefix(prefix, "records")}:refusals:of:acme`, "SAMPLES", 0);
  expect(bytes).toBeLessThan(1.5 * refusalLimits.maxStored * refusalLimits.maxBytes);
});

test("no entry is larger than the limit", async () => {
  await writeRefusals(redis, prefix, [refusal(1, { violations: ["x".repeat(refusalLimits.maxBytes)] })]);
  expect(await read()).toEqual([]);
});

test("what is too old is not shown, and is removed with the next refusal or by itself", async () => {
  const old = refusal(0, { at: new Date(nowMs - refusalLimits.maxAgeMs - 1) });
  const stream = `${companionPrefix(prefix, "records")}:refusals:of:acme`;
  await redis.xadd(stream, `${old.at.getTime()}-0`, "refusal", JSON.stringify(old));
  await redis.zadd(`${companionPrefix(prefix, "records")}:refusals:partners`, old.at.getTime(), "gone");
  expect(await read({ partner: "acme" })).toEqual([]);
  await writeRefusals(redis, prefix, [refusal(1)]);
  expect(await redis.xlen(stream)).toBe(1);
  expect(await redis.zrange(`${companionPrefix(prefix, "records")}:refusals:partners`, "0", "-1")).toEqual(["acme"]);
  for (const key of await redis.keys(`${companionPrefix(prefix, "records")}:refusals:*`)) {
    expect(await redis.pttl(key)).toBeGreaterThan(0);
  }
});
