import fc from "fast-check";
import { expect, test } from "vitest";
import { datePattern } from "./date-pattern.ts";
import { validatePayload } from "./index.ts";

const rule =
  "Must be a date such as 2026-06-14, or a date-time with its zone such as 2026-06-14T07:27:17Z or 2026-06-14T07:27:17+02:00, on a real day of the years 1900 to 2999; got ";
const leaveOut = " Leave the field out if you have no value.";

test.each<[unknown, string]>([
  ["2026-06-14T07:27:17", "a date-time without a zone."],
  ["2026-06-14T07:27", "a date-time without a zone."],
  ["2026-06-14T07:27:17.335", "a date-time without a zone."],
  ["2026-02-31", "a day that its month does not have."],
  ["2100-02-29T00:00:00Z", "a day that its month does not have."],
  ["2026-06-31", "a day that its month does not have."],
  ["2026-06-00", "a day that its month does not have."],
  ["2026-00-14", "a month that does not exist."],
  ["2026-14-06", "a month that does not exist."],
  ["1899-12-31", "a year before 1900 or after 2999."],
  ["0000-01-01", "a year before 1900 or after 2999."],
  ["3000-01-01", "a year before 1900 or after 2999."],
  ["2026-06-14T24:00:00Z", "hour 24, which is 00:00 of the next day."],
  ["2026-06-14T24:00:00", "hour 24, which is 00:00 of the next day."],
  ["2026-06-14T25:00:00Z", "an hour beyond 23."],
  ["2026-06-14T07:60:00Z", "a minute beyond 59."],
  ["2026-06-30T23:59:60Z", "a second beyond 59, such as a leap second."],
  ["2026-06-14T07:27:17.0123456789Z", "a fraction of a second of more than 9 digits."],
  ["2026-06-14T07:27:17,5Z", "a comma before the fraction of a second, in place of a point."],
  ["2026-06-14T07:27:17.Z", "a point without a fraction of a second behind it."],
  ["2026-06-14T07:27.5Z", "a fraction of a minute."],
  ["2026-06-14 07:27:17Z", "a space in place of the T."],
  ["2026-06-14t07:27:17Z", "a t in lower case."],
  ["2026-06-14T07:27:17z", "a z in lower case."],
  ["2026-06-14T07:27:17+02", "an offset without minutes."],
  ["2026-06-14T07:27:17+14:01", "an offset that no zone has."],
  ["2026-06-14T07:27:17-15:00", "an offset that no zone has."],
  ["2026-06-14T07:27:17+0260", "an offset that no zone has."],
  ["2026-06-14T07:27:17[Europe/London]", "a zone in another format."],
  ["2026-06-14T07:27:17 +02:00", "a zone in another format."],
  ["2026-06-14T07:27:17\u221202:00", "a zone in another format."],
  [" 2026-06-14", "a string with white space around it."],
  ["2026-06-14\n", "a string with white space around it."],
  ["20260614", "a date without hyphens."],
  ["1781421600", "an epoch number."],
  ["1781421600000", "an epoch number."],
  ["1781421600.5", "an epoch number."],
  ["14/06/2026", "another format."],
  ["14 June 2026", "another format."],
  ["2026-06-14T", "another format."],
  ["2026-6-14", "another format."],
  [1781421600, "a number. Write the date out, as a string; an epoch time is not read."],
  [null, `null.${leaveOut}`],
  ["", `an empty string.${leaveOut}`],
  [true, "a boolean. Put it in quotes."],
  [["2026-06-14"], "an array."],
])("of %j the violation says what is wrong with it: %s", (value, cause) => {
  expect(messagesFor(value)).toEqual([rule + cause]);
});

test("no violation repeats what was sent", () => {
  const almostDate = fc
    .tuple(fc.stringMatching(datePattern), fc.nat(34), fc.stringMatching(/^[0-9TZ:+. x-]{0,3}$/))
    .map(([text, at, other]) => text.slice(0, at) + other + text.slice(at + 1))
    .filter((text) => text.length > 3 && !datePattern.test(text));
  fc.assert(
    fc.property(fc.oneof(almostDate, fc.string({ minLength: 4 })), (text) => {
      fc.pre(!datePattern.test(text) && !rule.includes(text));
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
