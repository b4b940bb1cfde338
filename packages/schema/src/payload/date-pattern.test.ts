import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readDate } from "../normalise/date.ts";
import { acceptedDatePattern, datePattern, utcInstantPattern } from "./date-pattern.ts";

describe("datePattern", () => {
  test.each([
    "2026-06-14",
    "1900-01-01",
    "2999-12-31",
    "2024-02-29",
    "2000-02-29",
    "2400-02-29",
    "2026-06-14T07:27:17.335Z",
    "2026-06-14T07:27:17Z",
    "2026-06-14T07:27Z",
    "2026-06-14T00:00:00Z",
    "2026-06-14T23:59:59.999999999Z",
    "2026-06-14T07:27:17.335+02:00",
    "2026-06-14T07:27:17.335+0200",
    "2026-06-14T07:27:17-09:30",
    "2026-06-14T07:27:17-00:00",
    "2026-06-14T07:27:17+14:00",
    "2026-06-14T07:27:17-1400",
    "2024-02-29T12:00:00+13:45",
  ])("accepts %s", (text) => {
    expect(text).toMatch(datePattern);
  });

  test.each([
    ["an empty text", ""],
    ["a year before 1900", "1899-12-31"],
    ["a year after 2999", "3000-01-01"],
    ["the year 0000", "0000-01-01"],
    ["a longer year", "12026-06-14"],
    ["a signed year", "+002026-06-14"],
    ["month 0", "2026-00-14"],
    ["month 13", "2026-13-14"],
    ["day 0", "2026-06-00"],
    ["31 June", "2026-06-31"],
    ["32 January", "2026-01-32"],
    ["30 February of a leap year", "2024-02-30"],
    ["29 February of a common year", "2026-02-29"],
    ["29 February of 1900, no leap year", "1900-02-29"],
    ["29 February of 2100, no leap year", "2100-02-29"],
    ["a month of one digit", "2026-6-14"],
    ["a year and month", "2026-06"],
    ["a week", "2026-W24-7"],
    ["the basic format", "20260614"],
    ["slashes", "2026/06/14"],
    ["an impossible day with a time", "2026-02-31T07:27:17Z"],
    ["no time zone", "2026-06-14T07:27:17"],
    ["no time after T", "2026-06-14T"],
    ["a date with a zone", "2026-06-14Z"],
    ["a space instead of T", "2026-06-14 07:27:17Z"],
    ["a space before the zone", "2026-06-14T07:27:17 +02:00"],
    ["a space at the start", " 2026-06-14"],
    ["a line break at the end", "2026-06-14\n"],
    ["a lowercase t", "2026-06-14t07:27:17Z"],
    ["a lowercase z", "2026-06-14T07:27:17z"],
    ["24:00", "2026-06-14T24:00:00Z"],
    ["hour 25", "2026-06-14T25:00:00Z"],
    ["minute 60", "2026-06-14T07:60:00Z"],
    ["a leap second", "2026-06-30T23:59:60Z"],
    ["only an hour", "2026-06-14T07Z"],
    ["a fraction without digits", "2026-06-14T07:27:17.Z"],
    ["a fraction of ten digits", "2026-06-14T07:27:17.0123456789Z"],
    ["a fraction after a comma", "2026-06-14T07:27:17,5Z"],
    ["fractional minutes", "2026-06-14T07:27.5Z"],
    ["an offset without minutes", "2026-06-14T07:27:17+02"],
    ["an offset of more than 14 hours", "2026-06-14T07:27:17+14:01"],
    ["an offset of 15 hours", "2026-06-14T07:27:17-15:00"],
    ["an offset with 60 minutes", "2026-06-14T07:27:17+02:60"],
    ["an offset with a typographic minus", "2026-06-14T07:27:17−02:00"],
    ["the name of a time zone", "2026-06-14T07:27:17[Europe/London]"],
    ["Z and an offset", "2026-06-14T07:27:17Z+02:00"],
    ["digits of another script", "٢٠٢٦-٠٦-١٤"],
  ])("refuses %s", (_, text) => {
    expect(text).not.toMatch(datePattern);
  });

  test("accepts exactly the days of the calendar", () => {
    const twoDigits = (number: number) => String(number).padStart(2, "0");
    const day = fc.tuple(
      fc.integer({ min: 1890, max: 3010 }),
      fc.integer({ min: 0, max: 13 }),
      fc.integer({ min: 0, max: 32 }),
    );
    fc.assert(
      fc.property(day, ([year, month, dayOfMonth]) => {
        const text = `${year}-${twoDigits(month)}-${twoDigits(dayOfMonth)}`;
        const date = new Date(Date.UTC(year, month - 1, dayOfMonth));
        const isReal = date.toISOString().startsWith(text) && year >= 1900 && year <= 2999;

        expect(datePattern.test(text)).toBe(isReal);
      }),
      randomRuns(1_000),
    );
  });

  test("accepts only what readDate reads", () => {
    fc.assert(
      fc.property(fc.stringMatching(datePattern), (text) => {
        const day = expect.objectContaining({ day: text.slice(0, 10), hasZone: text.includes("T") });
        expect(readDate(text)).toEqual(day);
      }),
      randomRuns(500),
    );
  });

  test("accepts only texts that Date can parse", () => {
    fc.assert(
      fc.property(fc.stringMatching(datePattern), (text) => {
        // `Date` does not parse an offset without a colon.
        const readable = text.replace(/([+-]\d\d)(\d\d)$/, text.includes("T") ? "$1:$2" : "$&");

        expect(new Date(readable).getTime()).not.toBeNaN();
      }),
      randomRuns(500),
    );
  });
});

describe("acceptedDatePattern", () => {
  /** The pattern and the parser share no code. */
  test("accepts what readDate reads, blank text, and nothing else", () => {
    const mutated = fc
      .tuple(fc.stringMatching(acceptedDatePattern), fc.nat(40), fc.stringMatching(/^[0-9TtZ:+. [\]x-]{0,2}$/))
      .map(([text, at, other]) => text.slice(0, at) + other + text.slice(at + 1));
    const outcomes = { accepted: 0, refused: 0, none: 0 };
    fc.assert(
      fc.property(fc.oneof(fc.stringMatching(acceptedDatePattern), mutated), (text) => {
        fc.pre(text.trim().length <= 128);
        const read = readDate(text);
        expect(acceptedDatePattern.test(text)).toBe(read !== undefined || text.trim() === "");
        outcomes[read === undefined ? "refused" : read === "none" ? "none" : "accepted"] += 1;
      }),
      randomRuns(1_000),
    );
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(10);
  });
});

describe("utcInstantPattern", () => {
  test("accepts the output of Date.prototype.toISOString", () => {
    const date = fc.date({
      min: new Date("1900-01-01"),
      max: new Date("2999-12-31T23:59:59.999Z"),
      noInvalidDate: true,
    });
    fc.assert(fc.property(date, (instant) => utcInstantPattern.test(instant.toISOString())));
  });

  test.each([
    "2026-06-14",
    "2026-06-14T07:27:17Z",
    "2026-06-14T07:27:17.335+00:00",
    "2026-06-14T07:27:17.335123Z",
    "2026-02-30T07:27:17.335Z",
  ])("refuses %s", (text) => {
    expect(text).not.toMatch(utcInstantPattern);
  });
});
