import { createProducer, readLastUses } from "@booking-events/queue";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/scripts/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLastUseRecorder } from "./record-last-use.ts";

const prefix = uniquePrefix();
let producer: ReturnType<typeof createProducer>;

beforeAll(async () => {
  producer = createProducer({ redisUrl: redisUrl(), prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
});
afterAll(() => producer.close());

test("the newest use of each secret is written, and found by partner and secret", async () => {
  const recorder = createLastUseRecorder((uses) => producer.writeLastUses(uses));
  const before = Date.now();
  recorder.note("acme", "s1");
  recorder.note("acme", "s2");
  await recorder.stop();
  const lastUses = await readLastUses({ redisUrl: redisUrl(), prefix });
  expect(lastUses.of("acme", "s1")?.getTime()).toBeGreaterThanOrEqual(before);
  expect(lastUses.of("acme", "s2")).not.toBeNull();
  expect(lastUses.of("acme", "s3")).toBeNull();
});

test("what could not be written is written the next time", async () => {
  const written: string[][] = [];
  const results = [Promise.reject(new Error("Redis is out")), Promise.resolve()];
  const recorder = createLastUseRecorder(async (uses) => {
    written.push(uses.map(({ partner }) => partner));
    await results.shift();
  });
  recorder.note("acme", "s1");
  await recorder.stop();
  await recorder.stop();
  await recorder.stop();
  expect(written).toEqual([["acme"], ["acme"]]);
});
