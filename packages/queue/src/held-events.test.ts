import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createHeldEvents, type HeldJob } from "./held-events.ts";

const oneEvent = 2 * 65_536;

function aJob(characters: number): HeldJob {
  return {
    id: "1",
    token: "1:1",
    processedOn: 0,
    data: { text: "x".repeat(characters), damage: null, isMissing: false, subject: "" },
  };
}

async function isDone(promise: Promise<unknown>): Promise<boolean> {
  await nextTurn();
  return Promise.race([promise.then(() => true), nextTurn(false)]);
}

test("allows fetches while there is room, and again once there is", async () => {
  const held = createHeldEvents({ maxBytes: 100 });
  const job = aJob(50);
  expect(held.hasRoom()).toBe(true);
  held.hold(job);
  expect(held.hasRoom()).toBe(false);
  const opened = held.waitForRoom();
  expect(await isDone(opened)).toBe(false);
  held.settle(job);
  expect(await isDone(opened)).toBe(true);
  expect(held.hasRoom()).toBe(true);
});

test("counts an event once, however often it is removed", () => {
  const held = createHeldEvents({ maxBytes: 100 });
  const [one, another] = [aJob(10), aJob(50)];
  held.hold(one);
  held.hold(another);
  for (let times = 0; times < 3; times += 1) held.remove(one);
  expect(held.hasRoom()).toBe(false);
  expect([...held.locked()]).toEqual([another]);
});

test("reserves the size that a fetch may bring until it is answered", async () => {
  const held = createHeldEvents({ maxBytes: oneEvent });
  const fetched = held.fetchOne(async () => held.hold(aJob(10)));
  expect(held.hasRoom()).toBe(false);
  await fetched;
  expect(held.hasRoom()).toBe(false);
  await nextTurn();
  expect(held.hasRoom()).toBe(true);
});

test("gives each fetch of several events a share of the remaining room, which a failed fetch returns", async () => {
  const held = createHeldEvents({ maxBytes: 1_000 });
  const shares: number[] = [];
  const fetches = [1, 2, 3].map(() => held.fetchSome(async (maxBytes) => void shares.push(maxBytes)));
  fetches.push(held.fetchSome(() => Promise.reject(new Error("no Redis"))));
  await Promise.allSettled(fetches);
  expect(shares).toEqual([100, 90, 81]);
  await nextTurn();
  await held.fetchSome(async (maxBytes) => expect(maxBytes).toBe(100));
});

test("allows no fetch once it is stopped, and leaves no caller waiting", async () => {
  const held = createHeldEvents({ maxBytes: 100 });
  held.hold(aJob(50));
  const opened = held.waitForRoom();
  held.stop();
  await opened;
  await held.waitForRoom();
  expect(held.hasRoom()).toBe(false);
  await held.fetchSome(async (maxBytes) => expect(maxBytes).toBe(0));
});

test("is settled when nothing is being fetched or handled", async () => {
  const held = createHeldEvents({ maxBytes: 1_000 });
  const job = aJob(50);
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  const fetched = held.fetchOne(() => answer).then(() => held.hold(job));
  const settled = held.whenSettled();
  expect(await isDone(settled)).toBe(false);
  resolve();
  await fetched;
  expect(await isDone(settled)).toBe(false);
  held.settle(job);
  expect(await isDone(settled)).toBe(true);
  // Its lock is still needed.
  expect([...held.locked()]).toEqual([job]);
  await held.whenSettled();
});
