import { expect, test } from "vitest";
import { PendingProgress } from "./pending-progress.ts";

const placeOf = (lastId: number, snapshotAfter: string | null = null) => ({ lastId, snapshotAfter });
const waiting = { changeId: 9, sinceId: null, attempts: 1, pauseMs: 1, failure: "no" };

test("there is nothing to record while nothing has changed", () => {
  const pending = new PendingProgress(placeOf(5, "a"));
  expect(pending.take(placeOf(5, "a"))).toBeNull();
  pending.addDone("A", 5);
  expect(pending.take(placeOf(5, "a"))).toBeNull();
});

test.each([
  ["the last change", placeOf(6, "a")],
  ["the last booking of the snapshot", placeOf(5, "b")],
])("the place is recorded once when %s is another", (_, place) => {
  const pending = new PendingProgress(placeOf(5, "a"));
  expect(pending.take(place)).toEqual({ place, isWorking: null, breaker: null, rows: [] });
  expect(pending.take(place)).toBeNull();
});

test.each([true, false])("whether the last attempt succeeded (%j) is recorded once", (isWorking) => {
  const pending = new PendingProgress(placeOf(5));
  pending.noteAttempt(!isWorking);
  pending.noteAttempt(isWorking);
  expect(pending.take(placeOf(5))).toEqual({ place: placeOf(5), isWorking, breaker: null, rows: [] });
  expect(pending.take(placeOf(5))).toBeNull();
});

test("the breaker is recorded once", () => {
  const pending = new PendingProgress(placeOf(5));
  const breaker = { isOpen: true, probeInMs: 1_000 };
  pending.noteBreaker(breaker);
  expect(pending.take(placeOf(5))).toEqual({ place: placeOf(5), isWorking: null, breaker, rows: [] });
  expect(pending.take(placeOf(5))).toBeNull();
});

test("a booking that was delivered in its turn has a row only if it is ahead of the place", () => {
  const pending = new PendingProgress(placeOf(5));
  pending.addDone("A", 6);
  pending.addDone("B", 7);
  expect(pending.take(placeOf(6))?.rows).toEqual([{ bookingId: "B", doneId: 7, waiting: null }]);
  expect(pending.keeps("B")).toBe(false);
  expect(pending.take(placeOf(6))).toBeNull();
});

test.each([
  [null, 7],
  [6, 7],
  [8, 8],
])("a row says how far a booking is: of done up to %j and 7, it is %i", (doneId, wanted) => {
  const pending = new PendingProgress(placeOf(5));
  pending.addDone("A", 7);
  pending.addRow({ bookingId: "A", doneId, waiting });
  expect(pending.take(placeOf(5))?.rows).toEqual([{ bookingId: "A", doneId: wanted, waiting }]);
});

test("a row of a booking of which nothing is done says so", () => {
  const pending = new PendingProgress(placeOf(5));
  pending.addRow({ bookingId: "A", doneId: null, waiting });
  expect(pending.take(placeOf(5))?.rows).toEqual([{ bookingId: "A", doneId: null, waiting }]);
});

test("a booking can't have its turn until its newest row is recorded", () => {
  const pending = new PendingProgress(placeOf(5));
  for (const bookingId of ["A", "B"]) pending.addRow({ bookingId, doneId: 6, waiting });
  expect(pending.keeps("A")).toBe(true);
  pending.take(placeOf(5));
  expect([pending.keeps("A"), pending.keeps("C")]).toEqual([true, false]);
  pending.addRow({ bookingId: "A", doneId: 7, waiting });
  expect(pending.recorded()).toEqual(["B"]);
  expect([pending.keeps("A"), pending.keeps("B")]).toEqual([true, false]);
  pending.take(placeOf(5));
  expect(pending.recorded()).toEqual(["A"]);
  expect(pending.keeps("A")).toBe(false);
  expect(pending.recorded()).toEqual([]);
});
