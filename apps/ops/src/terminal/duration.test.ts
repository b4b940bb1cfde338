import { describe, expect, test } from "vitest";
import { parseDurationMs, parseExpiry, parsePast } from "./duration.ts";

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

describe("a past time", () => {
  test.each([
    ["1h", "2026-11-20T11:00:00.000Z"],
    ["2026-11-19", "2026-11-19T00:00:00.000Z"],
    ["2026-11-19T13:00:00+01:00", "2026-11-19T12:00:00.000Z"],
    ["2026-11-19 13:00:01", "2026-11-19T13:00:01.000Z"],
    ["2026-11-19 13:00:01.250 UTC", "2026-11-19T13:00:01.250Z"],
    ["02:00", "2026-11-20T02:00:00.000Z"],
    ["12:00", "2026-11-20T12:00:00.000Z"],
    ["12:01", "2026-11-19T12:01:00.000Z"],
    ["23:59", "2026-11-19T23:59:00.000Z"],
  ])("%s", (text, expected) => {
    expect(parsePast(text, now).toISOString()).toBe(expected);
  });

  test.each(["24:00", "2:00", "02:60", "02:00:00", "2026-11-19T13:00:01", "2026-11-31 13:00:01", "yesterday"])(
    "not %j",
    (text) => {
      expect(() => parsePast(text, now)).toThrow();
    },
  );
});
