import { beforeEach, expect, test } from "vitest";
import { BookingQueues } from "./booking-queues.ts";
import type { Entry } from "./intake.ts";

/** What was finished. */
let finished: (number | null)[] = [];
beforeEach(() => {
  finished = [];
});

/** It is new, and stands for others, unless something else is said. */
function anEntry(bookingId: string, changeId: number | null, more: Partial<Entry> = {}): Entry {
  const place = { lastId: changeId ?? 0, snapshotAfter: null };
  const stands = { standsForOthers: true, standsForEarlier: false };
  const finish = () => void finished.push(changeId);
  return { bookingId, changeId, ...stands, place, atMs: Number.POSITIVE_INFINITY, finish, ...more };
}

const old = { atMs: Number.NEGATIVE_INFINITY };

function queuesOf(entries: Entry[]): BookingQueues {
  const queues = new BookingQueues();
  for (const entry of entries) queues.add(entry);
  return queues;
}

test("of one booking, one entry at a time has its turn, and the next one after the other bookings", () => {
  const [a1, a2, a3, b4] = [anEntry("A", 1), anEntry("A", 2), anEntry("A", 3), anEntry("B", 4)];
  const queues = queuesOf([a1, a2, b4]);
  expect(queues.next()).toBe(a1);
  expect(queues.isBusy("A")).toBe(true);
  queues.add(a3);
  queues.end("A");
  expect(queues.isBusy("A")).toBe(false);
  expect([queues.next(), queues.next(), queues.next()]).toEqual([b4, a2, undefined]);
  queues.end("A");
  queues.end("B");
  expect(queues.next()).toBe(a3);
  queues.end("A");
  expect(queues.next()).toBeUndefined();
});

test("a booking can have its turn without an entry, and what waits of it waits on", () => {
  const [a1, b2] = [anEntry("A", 1), anEntry("B", 2)];
  const queues = queuesOf([a1]);
  queues.begin("A");
  queues.begin("B");
  expect([queues.isBusy("A"), queues.isBusy("B")]).toEqual([true, true]);
  queues.add(b2);
  expect(queues.next()).toBeUndefined();
  for (const bookingId of ["B", "A", "never begun"]) queues.end(bookingId);
  expect([queues.next(), queues.next(), queues.next()]).toEqual([b2, a1, undefined]);
});

test("what could not be done comes before what has come since", () => {
  const [a1, a2] = [anEntry("A", 1), anEntry("A", 2)];
  const queues = queuesOf([a1, a2]);
  queues.next();
  queues.putBack(a1);
  queues.end("A");
  expect(queues.next()).toBe(a1);
});

test("what waits of a booking up to a change is done with it", () => {
  const queues = queuesOf([1, null, 3, 4, 5].map((changeId) => anEntry("A", changeId)));
  queues.next();
  queues.finishUpTo("A", 3);
  queues.finishUpTo("B", 9);
  expect(finished).toEqual([null, 3]);
  expect([queues.has("A", 3), queues.has("A", 4), queues.has("B", 4)]).toEqual([false, true, false]);
  queues.end("A");
  expect(queues.next()?.changeId).toBe(4);
});

test("an old entry gives way to the last that stands for others", () => {
  const first = anEntry("A", 1, old);
  const third = anEntry("A", 3, old);
  const noMore = { ...old, standsForOthers: false };
  const queues = queuesOf([first, anEntry("A", 2, noMore), third, anEntry("A", 4, noMore)]);
  queues.next();
  expect(queues.skipOverridden(first)).toEqual({ ...third, standsForEarlier: true });
  expect(finished).toEqual([1, 2]);
  expect(queues.has("A", 4)).toBe(true);
});

test("what is new gives way to nothing", () => {
  const [first, second, third] = [anEntry("A", 1, old), anEntry("A", 2), anEntry("A", 3)];
  const queues = queuesOf([first, second, third]);
  queues.next();
  expect(queues.skipOverridden(first)).toEqual({ ...second, standsForEarlier: true });
  expect(queues.has("A", 3)).toBe(true);
});

test("what has nothing behind it gives way to nothing, however old it is", () => {
  const alone = anEntry("A", 1, old);
  const queues = queuesOf([alone]);
  expect(queues.skipOverridden(alone)).toBe(alone);
  queues.next();
  expect(queues.skipOverridden(alone)).toBe(alone);
  expect(finished).toEqual([]);
});
