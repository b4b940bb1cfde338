import { describe, expect, test } from "vitest";
import { parseDurationMs, parseExpiry } from "./duration.ts";

const now = new Date("2026-11-20T12:00:00Z");

describe("a duration", () => {
  test.each([
    ["0", 0],
    ["0h", 0],
    ["90s", 90_000],
    ["30m", 1_800_000],
    ["24h", 86_400_000],
    ["7d", 604_800_000],
  ])("%s", (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  test.each(["", "30", "h", "-1h", "1.5h", "1 h", "1w", "1H", "24hours", "4000d", "999999999d"])("not %j", (text) => {
    expect(() => parseDurationMs(text)).toThrow();
  });
});

describe("an expiry", () => {
  test.each([
    ["90d", "2027-02-18T12:00:00.000Z"],
    ["2027-02-28", "2027-02-28T00:00:00.000Z"],
    ["2027-06-30T12:00Z", "2027-06-30T12:00:00.000Z"],
    ["2027-06-30T12:00:00+02:00", "2027-06-30T10:00:00.000Z"],
    ["2028-02-29T00:00:00.5Z", "2028-02-29T00:00:00.500Z"],
  ])("%s", (text, expected) => {
    expect(parseExpiry(text, now).toISOString()).toBe(expected);
  });

  test.each([
    "0",
    "2026-11-20",
    "2026-11-20T12:00:00Z",
    "2027-02-31",
    "2027-02-31T00:00:00Z",
    "2027-06-30T25:00:00Z",
    "2027-06-30T12:00:00",
    "tomorrow",
    "1",
  ])("not %j", (text) => {
    expect(() => parseExpiry(text, now)).toThrow();
  });
});
