import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { HeldEvents, type HeldJob } from "./held-events.ts";

const concurrency = 10;

function aJob(characters: number): HeldJob {
  return {
    id: "1",
    token: "1:1",
    data: { text: "x".repeat(characters), damage: null, isMissing: false, subject: "" },
  };
}

async function isDone(promise: Promise<unknown>): Promise<boolean> {
  await nextTurn();
  return Promise.race([promise.then(() => true), nextTurn(false)]);
}

test("allows fetches while there is room for text, and again once there is", async () => {
  const held = new HeldEvents({ concurrency, maxHeldBytes: 100 });
  const job = aJob(50);
  expect(held.hasRoom()).toBe(true);
  held.hold(job);
  expect(held.hasRoom()).toBe(false);
  const opened = held.waitForRoom();
  expect(await isDone(opened)).toBe(false);
  held.endHandling(job);
  expect(await isDone(opened)).toBe(true);
  expect(held.hasRoom()).toBe(true);
});

test("allows fetches while fewer events are held than the limit, and again once there are", async () => {
  const held = new HeldEvents({ concurrency: 2, maxHeldBytes: 1_000 });
  const jobs = [aJob(1), aJob(1)];
  for (const job of jobs) held.hold(job);
  expect(held.hasRoom()).toBe(false);
  const opened = held.waitForRoom();
  // An event whose handler has ended may still need its lock.
  for (const job of jobs) held.endHandling(job);
  expect(await isDone(opened)).toBe(false);
  for (const job of jobs) held.remove(job);
  expect(await isDone(opened)).toBe(true);
});

test("lets a fetch use the room of all events that end in the same turn of the event loop", async () => {
  const held = new HeldEvents({ concurrency: 3, maxHeldBytes: 1_000 });
  const jobs = [aJob(10), aJob(20), aJob(30)];
  for (const job of jobs) held.hold(job);
  const fetched = held.waitForRoom().then(() => held.fetch(async (limits) => limits));
  for (const job of jobs.slice(1)) {
    await Promise.resolve();
    held.remove(job);
  }
  expect(await fetched).toEqual({ maxEvents: 2, maxBytes: 980 });
});

test("allows no fetches while it is halted, and again afterwards", async () => {
  const held = new HeldEvents({ concurrency, maxHeldBytes: 100 });
  held.halt("clock", true);
  held.halt("database", true);
  held.halt("clock", false);
  expect(held.hasRoom()).toBe(false);
  const opened = held.waitForRoom();
  expect(await isDone(opened)).toBe(false);
  held.halt("database", false);
  expect(await isDone(opened)).toBe(true);
  expect(held.hasRoom()).toBe(true);
});

test("applies new limits at once", async () => {
  const held = new HeldEvents({ concurrency: 1, maxHeldBytes: 100 });
  held.hold(aJob(10));
  const opened = held.waitForRoom();
  expect(await isDone(opened)).toBe(false);
  held.limitTo({ concurrency: 2, maxHeldBytes: 100 });
  expect(await isDone(opened)).toBe(true);
  held.limitTo({ concurrency: 2, maxHeldBytes: 20 });
  expect(held.hasRoom()).toBe(false);
});

test("counts an event once, however often it is removed", () => {
  const held = new HeldEvents({ concurrency, maxHeldBytes: 100 });
  const [one, another] = [aJob(10), aJob(50)];
  held.hold(one);
  held.hold(another);
  for (let times = 0; times < 3; times += 1) held.remove(one);
  expect(held.hasRoom()).toBe(false);
  expect([...held.locked()]).toEqual([another]);
});

test("allows no fetch once it is stopped, and leaves no caller waiting", async () => {
  const held = new HeldEvents({ concurrency, maxHeldBytes: 100 });
  held.hold(aJob(50));
  const opened = held.waitForRoom();
  held.stop();
  await opened;
  await held.waitForRoom();
  expect(held.hasRoom()).toBe(false);
});

test("is idle when nothing is being fetched or handled", async () => {
  const held = new HeldEvents({ concurrency, maxHeldBytes: 1_000 });
  const job = aJob(50);
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  const fetched = held.fetch(() => answer.then(() => held.hold(job)));
  const settled = held.whenIdle();
  expect(await isDone(settled)).toBe(false);
  resolve();
  await fetched;
  expect(await isDone(settled)).toBe(false);
  held.endHandling(job);
  expect(await isDone(settled)).toBe(true);
  // Its lock is still needed.
  expect([...held.locked()]).toEqual([job]);
  await held.whenIdle();
});
