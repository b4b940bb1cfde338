import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readDate } from "./date.ts";

const dayAlone = (day: string) => ({ day, moment: null, hasTime: false, hasZone: false });
const dayWithZone = (day: string) => ({ ...dayAlone(day), hasZone: true });
const local = (day: string) => ({ ...dayAlone(day), hasTime: true });
const instant = (day: string, moment: string) => ({ day, moment, hasTime: true, hasZone: true });

/** The text with each character left out or replaced, and with each two replaced. */
function nearly(text: string): string[] {
  return [...text].flatMap((_, at) => {
    const withOther = (other: string) => text.slice(0, at) + other + text.slice(at + Math.max(1, other.length));
    return ["", "xx", ..."0123456789x-:.TZ"].map(withOther);
  });
}

describe("readDate", () => {
  test.each([
    ["2026-06-14", dayAlone("2026-06-14")],
    ["20260614", dayAlone("2026-06-14")],
    [" \t2026-06-14\r\n", dayAlone("2026-06-14")],
    ["\ufeff2026-06-14\u00a0", dayAlone("2026-06-14")],
    ["1900-01-01", dayAlone("1900-01-01")],
    ["2999-12-31", dayAlone("2999-12-31")],
    ["2024-02-29", dayAlone("2024-02-29")],
    ["2000-02-29", dayAlone("2000-02-29")],
    ["2026-06-14Z", dayWithZone("2026-06-14")],
    ["2026-06-14+02:00", dayWithZone("2026-06-14")],
    ["2026-06-14-0500", dayWithZone("2026-06-14")],
    ["20260614-05", dayWithZone("2026-06-14")],
    ["2026-06-14 UTC", dayWithZone("2026-06-14")],
    ["2026-06-14 +02:00", dayWithZone("2026-06-14")],
    ["2026-06-14[Europe/London]", dayAlone("2026-06-14")],
    ["2026-06-14T07:27", local("2026-06-14")],
    ["2026-06-14 07:27:17", local("2026-06-14")],
    ["2026-06-14t07:27:17.335", local("2026-06-14")],
    ["20260614T07:27:17", local("2026-06-14")],
    ["2026-06-14T07:27:17[Europe/London]", local("2026-06-14")],
    ["2026-06-14T07:27Z", instant("2026-06-14", "2026-06-14T07:27:00Z")],
    ["2026-06-14T07:27:17z", instant("2026-06-14", "2026-06-14T07:27:17Z")],
    ["2026-06-14T07:27:17.335Z", instant("2026-06-14", "2026-06-14T07:27:17.335Z")],
    ["2026-06-14T23:59:59.9999999+00:00", instant("2026-06-14", "2026-06-14T23:59:59.999999Z")],
    ["2026-06-14T07:27:17.123456789123456789Z", instant("2026-06-14", "2026-06-14T07:27:17.123456Z")],
    ["2026-06-14 07:27:17+02", instant("2026-06-14", "2026-06-14T05:27:17Z")],
    ["2026-06-14 07:27:17 +0200", instant("2026-06-14", "2026-06-14T05:27:17Z")],
    ["2026-06-14 07:27:17 UTC", instant("2026-06-14", "2026-06-14T07:27:17Z")],
    ["2026-06-14 07:27:17GMT", instant("2026-06-14", "2026-06-14T07:27:17Z")],
    ["2026-06-14T00:30:00+02:00[Europe/Berlin]", instant("2026-06-14", "2026-06-13T22:30:00Z")],
    ["2026-06-14T07:27:17-03:00[America/Argentina/Buenos_Aires]", instant("2026-06-14", "2026-06-14T10:27:17Z")],
    ["2026-06-14T07:27:17Z[UTC]", instant("2026-06-14", "2026-06-14T07:27:17Z")],
    ["2026-12-31T23:00:00-09:30", instant("2026-12-31", "2027-01-01T08:30:00Z")],
    ["2026-06-14T07:27:17+14:00", instant("2026-06-14", "2026-06-13T17:27:17Z")],
    ["2026-06-14T07:27:17+05:59", instant("2026-06-14", "2026-06-14T01:28:17Z")],
    [`2026-06-14T07:27:17.${"0".repeat(107)}Z`, instant("2026-06-14", "2026-06-14T07:27:17.000000Z")],
    ["1900-01-01T00:00:00+01:00", instant("1900-01-01", "1899-12-31T23:00:00Z")],
    ["2999-12-31T23:00:00-01:00", instant("2999-12-31", "3000-01-01T00:00:00Z")],
  ])("reads %j", (text, read) => {
    expect(readDate(text)).toEqual(read);
  });

  test.each(["2026-06-14", "1999-12-28", "2026-10-05", "2026-10-05T07:27:17Z", "1999-12-28T23:27:17.3Z"])(
    "reads what is nearly %j the same with white space before it",
    (text) => {
      for (const sent of [text, `x${text}`, `${text}x`, ...nearly(text)])
        expect([sent, readDate(sent)]).toEqual([sent, readDate(` ${sent}`)]);
    },
  );

  test.each([
    "0001-01-01",
    "0001-01-01T00:00:00",
    "0001-01-01T00:00:00+00:00",
    "00010101",
    "0000-00-00",
    "0000-00-00 00:00:00",
    "00000000",
    "-0001-11-30T00:00:00+00:00",
    "9999-12-31",
    "9999-12-31T23:59:59.9999999",
    " 9999-12-31T23:59:59.999Z ",
    "0001-01-01 00:00:00 +0000 UTC",
    "0001-01-01 00:00:00 Europe/Berlin",
    "0001-01-01T00:00:00 LMT+00:53\n",
  ])("reads %j as no date", (text) => {
    expect(readDate(text)).toBe("none");
  });

  test.each([
    ["an empty text", ""],
    ["a year before 1900", "1899-12-31"],
    ["a year after 2999", "3000-01-01"],
    ["a longer year", "12026-06-14"],
    ["a signed year", "-2026-06-14"],
    ["month 0", "2026-00-14"],
    ["month 13", "2026-13-14"],
    ["day 0", "2026-06-00"],
    ["31 June", "2026-06-31"],
    ["31 February with a time", "2026-02-31T07:27:17Z"],
    ["29 February of 1900, no leap year", "1900-02-29"],
    ["29 February of 2100, no leap year", "21000229"],
    ["a month of one digit", "2026-6-14"],
    ["one hyphen", "2026-0614"],
    ["a year and month", "2026-06"],
    ["a week", "2026-W24-7"],
    ["slashes", "2026/06/14"],
    ["the day first", "14/06/2027"],
    ["a Unix timestamp", "1781421600"],
    ["no time after T", "2026-06-14T"],
    ["two blanks before the time", "2026-06-14  07:27:17"],
    ["two blanks before the zone", "2026-06-14T07:27:17  +02:00"],
    ["a no-break space before the zone", "2026-06-14T07:27:17\u00a0Z"],
    ["24:00", "2026-06-14T24:00:00Z"],
    ["hour 25", "2026-06-14T25:00:00Z"],
    ["minute 60", "2026-06-14T07:60:00Z"],
    ["a leap second", "2026-06-30T23:59:60Z"],
    ["only an hour", "2026-06-14T07Z"],
    ["a time without colons", "20260614T072717Z"],
    ["a fraction without digits", "2026-06-14T07:27:17.Z"],
    ["a fraction after a comma", "2026-06-14T07:27:17,5Z"],
    ["fractional minutes", "2026-06-14T07:27.5Z"],
    ["an offset of more than 14 hours", "2026-06-14T07:27:17+14:01"],
    ["an offset of 15 hours after a day", "2026-06-14-15:00"],
    ["an offset with 60 minutes", "2026-06-14T07:27:17+02:60"],
    ["an offset with a typographic minus", "2026-06-14T07:27:17\u221202:00"],
    ["a zone without brackets", "2026-06-14T07:27:17 Europe/London"],
    ["brackets without a zone", "2026-06-14T07:27:17Z[]"],
    ["Z and an offset", "2026-06-14T07:27:17Z+02:00"],
    ["a word around", "on 2026-06-14"],
    ["digits of another script", "٢٠٢٦-٠٦-١٤"],
    ["a longer number that begins like no date", "000000001781421600"],
    ["a day after a word that is none", "x0001-01-01"],
    ["more than 128 characters that begin like no date", `0001-01-01 ${"0".repeat(118)}`],
    ["more than 128 characters", `2026-06-14T07:27:17.${"0".repeat(108)}Z`],
  ])("does not read %s", (_, text) => {
    expect(readDate(text)).toBeUndefined();
  });
});

const two = (number: number) => String(number).padStart(2, "0");

/** `Date` does not share code with `readDate`, and reads one form of each moment. */
test("reads what Date reads, in whatever form it is written", () => {
  const form = fc.record({
    ...{ year: fc.integer({ min: 1890, max: 3010 }), month: fc.integer({ min: 0, max: 13 }), day: fc.nat(32) },
    ...{ hour: fc.nat(25), minute: fc.nat(61), second: fc.option(fc.nat(61), { nil: undefined }) },
    fraction: fc.stringMatching(/^[0-9]{1,6}$/),
    zone: fc.constantFrom("", "Z", "+02:00", "-09:30", "+14:00", "-15:00"),
    ...{ hyphen: fc.constantFrom("-", ""), separator: fc.constantFrom("T", "t", " "), hasFraction: fc.boolean() },
    ...{ blank: fc.constantFrom("", " "), place: fc.constantFrom("", "[Asia/Tokyo]"), colon: fc.constantFrom(":", "") },
    around: fc.constantFrom("", " ", "\r\n"),
  });
  fc.assert(
    fc.property(form, (parts) => {
      const { year, month, day, hour, minute, second, fraction, zone, hyphen, separator, hasFraction } = parts;
      const date = `${year}-${two(month)}-${two(day)}`;
      const seconds = second === undefined ? "" : `:${two(second)}${hasFraction ? `.${fraction}` : ""}`;
      const time = `${two(hour)}:${two(minute)}`;
      const written = `${parts.around}${date.replaceAll("-", hyphen)}${separator}${time}${seconds}${
        zone && parts.blank + zone.replace(":", parts.colon)
      }${parts.place}${parts.around}`;
      const isReal = new Date(Date.UTC(year, month - 1, day)).toISOString().startsWith(date);
      const isTime = hour < 24 && minute < 60 && (second ?? 0) < 60;
      if (!isReal || !isTime || year < 1900 || year > 2999 || zone === "-15:00") {
        expect(readDate(written)).toBeUndefined();
        return;
      }
      const read = readDate(written);
      expect(read).toMatchObject({ day: date, hasTime: true, hasZone: zone !== "" });
      const { moment } = read as { moment: string | null };
      const oracle = new Date(`${date}T${time}${seconds}${zone || "Z"}`).getTime();
      expect(moment === null ? null : new Date(moment).getTime()).toBe(zone === "" ? null : oracle);
    }),
    randomRuns(1_000),
  );
});

test("reads any text without an exception, and no long one", () => {
  const pieces = fc.constantFrom(
    "2026-06-14",
    "2026",
    "-",
    "0",
    "T",
    "07:27",
    ":",
    ".",
    "+02",
    " ",
    "[",
    "]",
    "Z",
    "x",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces).map((all) => all.join("")),
      ),
      (text) => {
        const read = readDate(text);
        if (typeof read === "object") expect(read.day).toMatch(/^[12][0-9]{3}-[01][0-9]-[0-3][0-9]$/);
      },
    ),
    randomRuns(1_000),
  );
});

test.each([
  ...["1900-01-01T00:00:00Z", "2026-06-14T07:27:17.3Z", "2026-06-14T07:27:17.335Z", "2026-06-14T23:59:59.335129Z"],
  ...["2999-12-28T20:00:00Z", "2026-06-28", "2026-13-14T07:27:17Z", "2026-06-14T24:00:00Z", "2026-06-14T07:60:00Z"],
])("a tidy value is read as it is with white space around it: %s", (sent) => {
  expect(readDate(sent)).toEqual(readDate(` ${sent} `));
});
