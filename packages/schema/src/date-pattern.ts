/**
 * Dates and date-times as regular expressions, calendar included, so that the validator and the JSON Schema have one
 * rule. (valibot's own date actions accept 31 February.) `[0-9]` because `\d` means more in some other languages.
 */

const year = "(?:19|2[0-9])[0-9]{2}";
const dayOfAnyYear = [
  "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
  "02-(?:0[1-9]|1[0-9]|2[0-8])",
].join("|");
/** Every fourth year; of the years that end a century, every fourth. */
const leapYear = "(?:(?:19|2[0-9])(?:0[48]|[2468][048]|[13579][26])|2[048]00)";
const date = `(?:${year}-(?:${dayOfAnyYear})|${leapYear}-02-29)`;

/** No 24:00 and no leap second: what reads the text later does not agree on the instant that they mean. */
const minuteOfDay = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
const second = "[0-5][0-9]";
/** Zones of the real world reach from -12:00 to +14:00. PostgreSQL refuses offsets of 16 hours and more. */
const zone = "(?:Z|[+-](?:(?:0[0-9]|1[0-3]):?[0-5][0-9]|14:?00))";

/** `2026-06-14`, or with a time and its zone: `2026-06-14T07:27:17.335Z`, `…+02:00`, `…+0200`. Years 1900 to 2999. */
export const datePattern = new RegExp(`^${date}(?:T${minuteOfDay}(?::${second}(?:\\.[0-9]{1,9})?)?${zone})?$`);

/** The length of `2026-06-14T07:27:17.123456789+02:00`. */
export const maxDateLength = 35;

/** What `Date.prototype.toISOString` gives: UTC with milliseconds. */
export const utcInstantPattern = new RegExp(`^${date}T${minuteOfDay}:${second}\\.[0-9]{3}Z$`);
