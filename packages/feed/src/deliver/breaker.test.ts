import fc from "fast-check";
import { expect, test } from "vitest";
import { Breaker } from "./breaker.ts";

const fresh = { isProbe: false, hasFailedBefore: false };
const again = { isProbe: false, hasFailedBefore: true };
const probe = { isProbe: true, hasFailedBefore: true };

test("five bookings that fail in a row open it, and cost none of them an attempt", () => {
  const breaker = new Breaker(8);
  expect([1, 2, 3, 4].map(() => breaker.fail(fresh))).toEqual(["counts", "counts", "counts", "counts"]);
  expect(breaker.isOpen).toBe(false);
  expect(breaker.fail(fresh)).toBe("opens");
  expect(breaker.isOpen).toBe(true);
  // What was under way when it opened.
  expect(breaker.fail(fresh)).toBe("free");
  expect(breaker.probes).toBe(0);
});

test("it is probed after pauses that grow from a second to a minute", () => {
  const breaker = new Breaker(8, { isOpen: true });
  const pauses = Array.from({ length: 14 }, () => {
    const { probePauseMs } = breaker;
    expect(breaker.fail(probe)).toBe("free");
    return probePauseMs;
  });
  expect(pauses).toEqual([1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 60, 60].map((seconds) => seconds * 1_000));
});

test("the first success closes it, and the number of attempts at a time doubles from one with each success", () => {
  const breaker = new Breaker(6, { isOpen: true });
  expect(breaker.limit).toBe(1);
  expect(breaker.succeed()).toBe("closes");
  const limits = [1, 2, 3, 4].map(() => {
    const { limit } = breaker;
    expect(breaker.succeed()).toBe("stays");
    return limit;
  });
  expect(limits).toEqual([1, 2, 4, 6]);
  expect(breaker.limit).toBe(6);
});

const attempts = fc.array(fc.constantFrom("fresh", "again", "success"), { maxLength: 200 });

test("it opens exactly when five bookings that had not failed before fail with no success between", () => {
  fc.assert(
    fc.property(attempts, (sequence) => {
      const breaker = new Breaker(8);
      let inARow = 0;
      for (const attempt of sequence) {
        if (attempt === "success") {
          breaker.succeed();
          inARow = 0;
        } else {
          const wasOpen = breaker.isOpen;
          const cost = breaker.fail(attempt === "fresh" ? fresh : again);
          if (attempt === "fresh" && !wasOpen) inARow += 1;
          expect(cost).toBe(wasOpen ? "free" : attempt === "fresh" && inARow === 5 ? "opens" : "counts");
        }
        expect(breaker.isOpen).toBe(inARow >= 5);
        expect(breaker.limit).toBeGreaterThanOrEqual(1);
        expect(breaker.limit).toBeLessThanOrEqual(8);
      }
    }),
  );
});

test("bookings that always fail never open it, however many they are, once each has failed", () => {
  const breaker = new Breaker(8);
  for (const _ of Array.from({ length: 1_000 })) expect(breaker.fail(again)).toBe("counts");
});
