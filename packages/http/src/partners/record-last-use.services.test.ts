import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { openRecords, readLastUses } from "@booking-events/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLastUseRecorder } from "./record-last-use.ts";

const prefix = uniquePrefix();
const records = openRecords({ redisServers: redisUrl(), prefix, connectionName: "test", onError: () => {} });

// It does not wait for a connection that is still being opened.
beforeAll(() => waitFor(() => records.writeLastUses([]).then(() => true)));
afterAll(() => records.close());

const read = () => readLastUses({ redisServers: redisUrl(), prefix });

function create(more: Partial<Parameters<typeof createLastUseRecorder>[0]> = {}) {
  return createLastUseRecorder({
    write: records.writeLastUses,
    onError: () => {},
    ...more,
  });
}

test("the last use of each secret is written, and can be read by partner and secret", async () => {
  const recorder = create({ intervalMs: 10 });
  try {
    recorder.record("acme", "s1");
    recorder.record("acme", "s2");
    await waitFor(async () => expect((await read()).of("acme", "s2")).not.toBeNull());
    const between = Date.now();
    recorder.record("acme", "s1");
    await waitFor(async () => expect((await read()).of("acme", "s1")?.getTime()).toBeGreaterThanOrEqual(between));
    const lastUses = await read();
    expect(lastUses.of("acme", "s2")?.getTime()).toBeLessThanOrEqual(between);
    expect(lastUses.of("acme", "s3")).toBeNull();
    expect(lastUses.of("zenith", "s1")).toBeNull();
  } finally {
    await recorder.stop();
  }
});

test("stopping writes the remaining uses", async () => {
  const recorder = create();
  recorder.record("stopped", "s1");
  await recorder.stop();
  expect((await read()).of("stopped", "s1")).not.toBeNull();
});

test("a failed write is reported and retried; what was written is not written again", async () => {
  const written: string[][] = [];
  const errors: unknown[] = [];
  const outage = new Error("Redis is out");
  const results = [Promise.reject(outage), Promise.resolve()];
  const recorder = create({
    async write(uses) {
      written.push(uses.map(({ partner }) => partner));
      await results.shift();
    },
    onError: (error) => errors.push(error),
  });
  recorder.record("acme", "s1");
  await recorder.stop();
  await recorder.stop();
  await recorder.stop();
  expect(written).toEqual([["acme"], ["acme"]]);
  expect(errors).toEqual([outage]);
});
