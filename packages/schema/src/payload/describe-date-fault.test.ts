import fc from "fast-check";
import { expect, test } from "vitest";
import { validatePayload } from "../index.ts";
import { readDate } from "../normalise/date.ts";
import { datePattern } from "./date-pattern.ts";

const rule =
  "Must be a date such as 2026-06-14, or a date-time such as 2026-06-14T07:27:17Z or 2026-06-14T07:27:17+02:00, " +
  "between the years 1900 and 2999; got ";
const leaveOut = " Omit the field if you have no value.";

test.each<[unknown, string]>([
  ["2026-02-31", "a day that does not exist in that month."],
  ["2100-02-29T00:00:00Z", "a day that does not exist in that month."],
  ["2026-06-31", "a day that does not exist in that month."],
  ["2026-06-00", "a day that does not exist in that month."],
  ["2026-00-14", "a month that does not exist."],
  ["2026-14-06", "a month that does not exist."],
  ["1899-12-31", "a year before 1900 or after 2999."],
  ["0000-01-01", "a year before 1900 or after 2999."],
  ["30000101", "a year before 1900 or after 2999."],
  ["3000-01-01", "a year before 1900 or after 2999."],
  ["2026-06-14T24:00:00Z", "hour 24, which is 00:00 on the next day."],
  ["2026-06-14T24:00:00", "hour 24, which is 00:00 on the next day."],
  ["2026-06-14T25:00:00Z", "an hour above 23."],
  ["2026-06-14T07:60:00Z", "a minute above 59."],
  ["2026-06-30T23:59:60Z", "a second above 59, such as a leap second."],
  ["2026-06-14T07:27:17,5Z", "a comma instead of a point before the fractional seconds."],
  ["2026-06-14T07:27:17.Z", "a point without fractional seconds after it."],
  ["2026-06-14T07:27.5Z", "fractional minutes."],
  ["2026-06-14T07:27:17+14:01", "a UTC offset that no time zone has."],
  ["2026-06-14T07:27:17-15:00", "a UTC offset that no time zone has."],
  ["2026-06-14T07:27:17+0260", "a UTC offset that no time zone has."],
  ["2026-06-14-15:00", "a UTC offset that no time zone has."],
  ["2026-06-14T07:27:17Z+02:00", "a time zone in another format."],
  ["2026-06-14T07:27:17 Europe/London", "a time zone in another format."],
  ["2026-06-14T07:27:17  +02:00", "a time zone in another format."],
  ["2026-06-14T07:27:17\u221202:00", "a time zone in another format."],
  ["20261432", "a month that does not exist."],
  [" 2026-06-31\n", "a day that does not exist in that month."],
  [`2026-06-14T07:27:17.${"0".repeat(128)}`, "a longer string."],
  ["1781421600", "a Unix timestamp."],
  ["1781421600000", "a Unix timestamp."],
  ["1781421600.5", "a Unix timestamp."],
  ["14/06/2026", "another date format."],
  ["2026-06-14 Europe/London", "another date format."],
  ["14 June 2026", "another date format."],
  ["2026-06-14T", "another date format."],
  ["2026-6-14", "another date format."],
  [1781421600, "a number. Send the date as a string. Unix timestamps are not supported."],
  [null, `null.${leaveOut}`],
  [true, "a boolean. Put it in quotes."],
  [["2026-06-14"], "an array."],
])("the violation for %j says what is wrong: %s", (value, cause) => {
  expect(messagesFor(value)).toEqual([rule + cause]);
});

test("no violation repeats the value", () => {
  const almostDate = fc
    .tuple(fc.stringMatching(datePattern), fc.nat(34), fc.stringMatching(/^[0-9TZ:+. x-]{0,3}$/))
    .map(([text, at, other]) => text.slice(0, at) + other + text.slice(at + 1))
    .filter((text) => text.length > 3);
  fc.assert(
    fc.property(fc.oneof(almostDate, fc.string({ minLength: 4 })), (text) => {
      fc.pre(readDate(text) === undefined && text.trim() !== "" && !rule.includes(text));
      const [message = ""] = messagesFor(text);
      expect(message).toMatch(/; got [^;]+\.$/);
      expect(message.slice(rule.length)).not.toContain(text);
    }),
    { numRuns: 1_000 },
  );
});

function messagesFor(value: unknown): string[] {
  const result = validatePayload("create", {
    consumerTripPartnerExternalReference: "booking-2001",
    consumerTripArrivalDate: value,
  });
  return result.success ? [] : result.violationList.map(({ message }) => message);
}
