import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRetryAfter, retryDelayMs } from "./retry-delay.ts";

const delays = { firstMs: 1_000, longestMs: 30_000 };

describe("the delay before a retry", () => {
  test("doubles up to the longest", () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 2_000].map((attempt) => retryDelayMs(attempt, undefined, delays, 1));

    expect(longest).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  test("has a random part of one half", () => {
    expect(retryDelayMs(2, undefined, delays, 0)).toBe(1_000);
    expect(retryDelayMs(2, undefined, delays, 0.5)).toBe(1_500);
  });

  test("is never shorter than Retry-After, and has a random part then too", () => {
    expect(retryDelayMs(1, 5_000, delays, 0)).toBe(5_000);
    expect(retryDelayMs(1, 5_000, delays, 0.5)).toBe(5_500);
    expect(retryDelayMs(3, 0, delays, 0.5)).toBe(2_000);
  });
});

describe("Retry-After", () => {
  const now = Date.UTC(2026, 10, 22, 12, 0, 0);
  const parse = (header: string | null, date: string | null = null) => parseRetryAfter(header, date, now);

  test("is a number of seconds", () => {
    expect(parse("120")).toBe(120_000);
    expect(parse("0")).toBe(0);
  });

  test("is a date", () => {
    expect(parse("Sun, 22 Nov 2026 12:00:05 GMT")).toBe(5_000);
    expect(parse("Sun, 22 Nov 2026 11:00:00 GMT")).toBe(0);
  });

  test("as a date is compared with the server's clock, not the local one", () => {
    expect(parse("Sun, 22 Nov 2026 15:00:07 GMT", "Sun, 22 Nov 2026 15:00:00 GMT")).toBe(7_000);
  });

  test.each([null, "", "-5", "1.5", "soon", "2026-11-22", "Sun, 99 Nov 2026 12:00:05 GMT", "Infinity", "5, 10"])(
    "%j counts as absent",
    (header) => {
      expect(parse(header)).toBeUndefined();
    },
  );

  test("never leads to a negative or undefined delay", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.date({ noInvalidDate: true }).map((d) => d.toUTCString()),
        ),
        (header) => {
          const result = parse(header);
          expect(result === undefined || result >= 0).toBe(true);
        },
      ),
    );
  });
});
