import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { Turns, turnLimits } from "./take-turns.ts";

const { budgetMs, budgetWhileAcceptingMs, itemsWhileAccepting, longestWaitMs, maxWaitingBytes } = turnLimits;

let nowMs: number;
let done: string[];
let isAccepting: boolean;
let turns: Turns;

beforeEach(() => {
  nowMs = 1_000_000;
  done = [];
  isAccepting = false;
  turns = new Turns({ isAccepting: () => isAccepting, now: () => nowMs });
});

/** Work that takes the whole budget of a turn. */
function work(partner: string, { takesMs = budgetMs, bytes = 1 } = {}): Promise<string> {
  return turns.take(partner, bytes, () => {
    nowMs += takesMs;
    done.push(partner);
    return partner;
  });
}

test("work runs immediately while the turn has time left", async () => {
  const results = Array.from({ length: 5 }, () => work("acme", { takesMs: budgetMs / 5 }));
  expect(done).toHaveLength(5);
  expect(await Promise.all(results)).toEqual(Array(5).fill("acme"));
});

test("work beyond the turn's budget runs in later turns, in order of arrival", async () => {
  const order: number[] = [];
  const results = [1, 2, 3].map((number) =>
    turns.take("acme", 1, () => {
      nowMs += budgetMs;
      order.push(number);
    }),
  );
  expect(order).toEqual([1]);
  await nextTurn();
  expect(order).toEqual([1, 2]);
  await Promise.all(results);
  expect(order).toEqual([1, 2, 3]);
});

test("each turn has its budget once, however many items of work started it", async () => {
  const short = Array.from({ length: 5 }, () => work("acme", { takesMs: budgetMs / 5 }));
  const waiting = Array.from({ length: 3 }, () => work("acme"));
  expect(done).toHaveLength(5);
  await nextTurn();
  expect(done).toHaveLength(6);
  await Promise.all([...short, ...waiting]);
});

test("a partner waits for one item of each other partner, however many those have waiting", async () => {
  const heavy = Array.from({ length: 10 }, () => work("worst"));
  const light = work("acme");
  const other = work("globe");
  await Promise.all([...heavy, light, other]);
  expect(done.slice(0, 4)).toEqual(["worst", "worst", "acme", "globe"]);
});

test("a partner with nothing waiting does not wait for one that has work waiting", async () => {
  const heavy = Array.from({ length: 3 }, () => work("worst", { takesMs: budgetMs }));
  await nextTurn();
  // The next turn has begun, and its budget is spent.
  const light = work("acme");
  await light;
  expect(done.indexOf("acme")).toBeLessThanOrEqual(3);
  await Promise.all(heavy);
});

test("while connections are waiting, a turn with little work is followed by turns that only accept them", async () => {
  isAccepting = true;
  const results = Array.from({ length: 4 }, () => work("acme", { takesMs: budgetWhileAcceptingMs / 2 }));
  // Half of the turns have come when more work does, and it waits with the rest.
  for (let turn = 0; turn <= itemsWhileAccepting; turn += 1) {
    expect(done).toHaveLength(2);
    if (turn === itemsWhileAccepting / 2) results.push(work("acme", { takesMs: budgetWhileAcceptingMs / 2 }));
    await nextTurn();
  }
  expect(done).toHaveLength(4);
  // As soon as none is waiting any more, work goes on.
  isAccepting = false;
  await nextTurn();
  expect(done).toHaveLength(5);
  await Promise.all(results);
});

test("newer work does not overtake what waited for connections to be accepted, as soon as none is waiting", async () => {
  isAccepting = true;
  const order: string[] = [];
  const add = (name: string) =>
    turns.take("acme", 1, () => {
      nowMs += budgetWhileAcceptingMs;
      order.push(name);
    });
  const results = ["first", "second", "older"].map(add);
  while (order.length < 2) await nextTurn();
  isAccepting = false;
  results.push(add("newer"));
  expect(order).toEqual(["first", "second"]);
  await Promise.all(results);
  expect(order).toEqual(["first", "second", "older", "newer"]);
});

test("while connections are waiting, a turn has only so many items, however short they are", async () => {
  isAccepting = true;
  const results = Array.from({ length: itemsWhileAccepting + 1 }, () => work("acme", { takesMs: 0 }));
  expect(done).toHaveLength(itemsWhileAccepting);
  for (let turn = 0; turn < itemsWhileAccepting; turn += 1) await nextTurn();
  expect(done).toHaveLength(itemsWhileAccepting);
  results.push(...Array.from({ length: itemsWhileAccepting }, () => work("acme", { takesMs: 0 })));
  await nextTurn();
  expect(done).toHaveLength(2 * itemsWhileAccepting);
  isAccepting = false;
  await Promise.all(results);
});

test("work that would have waited too long soon does not wait for connections", async () => {
  isAccepting = true;
  const results = [work("acme"), work("acme"), work("acme")];
  await nextTurn();
  nowMs += longestWaitMs / 2;
  await nextTurn();
  expect(done).toHaveLength(1);
  nowMs += 1;
  await nextTurn();
  expect(done).toHaveLength(2);
  await nextTurn();
  expect(done).toHaveLength(3);
  await Promise.all(results);
});

test("work that would have waited too long soon is seen behind work that may wait", async () => {
  isAccepting = true;
  const batch = () => turns.take("batch", 0, () => done.push("batch"), true);
  const results = [work("acme"), batch(), work("globe")];
  nowMs += longestWaitMs / 2 + 1;
  await nextTurn();
  expect(done).toEqual(["acme", "batch", "globe"]);
  await Promise.all(results);
});

test("so is work behind a batch of the same partner", async () => {
  isAccepting = true;
  const line = () => turns.take("globe", 0, () => done.push("line"), true);
  const results = [work("acme"), line(), work("globe")];
  nowMs += longestWaitMs / 2 + 1;
  await nextTurn();
  expect(done).toEqual(["acme", "line", "globe"]);
  await Promise.all(results);
});

test("a connection that comes after work waits for no more work", async () => {
  const results = [work("acme"), work("acme")];
  isAccepting = true;
  for (let turn = 0; turn <= itemsWhileAccepting; turn += 1) {
    expect(done).toHaveLength(1);
    await nextTurn();
  }
  await Promise.all(results);
  expect(done).toHaveLength(2);
});

test("each turn with work is followed by as many without", async () => {
  isAccepting = true;
  const results = Array.from({ length: 3 }, () => work("acme"));
  const turns: number[] = [];
  for (let turn = 0; done.length < 3; turn += 1) {
    await nextTurn();
    if (done.length > turns.length + 1) turns.push(turn);
  }
  expect(turns).toEqual([itemsWhileAccepting, 2 * itemsWhileAccepting + 1]);
  await Promise.all(results);
});

test("while connections are waiting, one item that takes longer is all that a turn does", async () => {
  isAccepting = true;
  const results = [work("acme"), work("acme", { takesMs: 0 })];
  expect(done).toHaveLength(1);
  await Promise.all(results);
  expect(done).toHaveLength(2);
});

test("a partner's newer work never overtakes its older work", async () => {
  const first = [work("acme"), work("acme", { takesMs: 1 })];
  nowMs += 1;
  const order: string[] = [];
  void first[1]?.then(() => order.push("older"));
  await nextTurn();
  const newer = work("acme", { takesMs: 1 }).then(() => order.push("newer"));
  await Promise.all([...first, newer]);
  expect(order).toEqual(["older", "newer"]);
});

test("work that has waited too long is refused, and takes no time from the others", async () => {
  const results = [work("worst"), work("worst")];
  nowMs += longestWaitMs + 1;
  await expect(results[1]).rejects.toMatchObject({ answer: { status: 503, code: "too-much-to-read" } });
  expect(done).toEqual(["worst"]);
  await work("worst");
  expect(done).toEqual(["worst", "worst"]);
});

test("work that has waited exactly as long as allowed runs", async () => {
  const results = [work("acme"), work("acme")];
  nowMs += longestWaitMs;
  expect(await Promise.all(results)).toEqual(["acme", "acme"]);
});

test("a partner's waiting bytes are limited and do not count towards others' limits", async () => {
  const half = { bytes: maxWaitingBytes / 2 };
  const waiting = [work("worst"), work("worst", half), work("worst", half)];
  await expect(work("worst")).rejects.toMatchObject({ answer: { status: 503, code: "too-much-to-read" } });
  const other = work("acme", half);
  await Promise.all([...waiting, other]);
  await nextTurn();
  // Finished work no longer counts.
  await Promise.all([work("worst"), work("worst", half), work("worst", half)]);
  expect(done).toHaveLength(7);
});

test("finished work no longer counts even if more is waiting", async () => {
  const half = { bytes: maxWaitingBytes / 2 };
  const waiting = [work("worst"), work("worst", half), work("worst", half)];
  await nextTurn();
  expect(done).toHaveLength(2);
  await Promise.all([...waiting, work("worst", half)]);
  expect(done).toHaveLength(4);
});

test("an error in the work rejects only its caller's promise, whether it runs now or later", async () => {
  const fail = () =>
    turns.take("acme", 1, () => {
      nowMs += budgetMs;
      throw new Error("malformed");
    });
  const results = await Promise.allSettled([fail(), fail(), work("acme")]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
});
