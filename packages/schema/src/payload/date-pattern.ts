/**
 * Dates and date-times as regular expressions, including the calendar, so the validator and the JSON Schema share one
 * rule. (valibot's own date actions accept 31 February.) The patterns use `[0-9]` because `\d` matches other digits in
 * some languages.
 */

const year = "(?:19|2[0-9])[0-9]{2}";
const dayOfAnyYear = [
  "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
  "02-(?:0[1-9]|1[0-9]|2[0-8])",
].join("|");
/** Every fourth year, but of the years that end a century only every fourth. */
const leapYear = "(?:(?:19|2[0-9])(?:0[48]|[2468][048]|[13579][26])|2[048]00)";
const date = `(?:${year}-(?:${dayOfAnyYear})|${leapYear}-02-29)`;

/** Excludes 24:00 and leap seconds, because JavaScript and PostgreSQL disagree about which instants they are. */
const minuteOfDay = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
const second = "[0-5][0-9]";
/** Real time zones range from -12:00 to +14:00. PostgreSQL refuses offsets of 16 hours and more. */
const zone = "(?:Z|[+-](?:(?:0[0-9]|1[0-3]):?[0-5][0-9]|14:?00))";

/**
 * `2026-06-14`, or with a time and a time zone: `2026-06-14T07:27:17.335Z`, `…+02:00`, `…+0200`. Years 1900 to 2999.
 */
export const datePattern = new RegExp(`^${date}(?:T${minuteOfDay}(?::${second}(?:\\.[0-9]{1,9})?)?${zone})?$`);

/** The length of `2026-06-14T07:27:17.123456789+02:00`. */
export const maxDateLength = 35;

/** The format of `Date.prototype.toISOString`: UTC with milliseconds. */
export const utcInstantPattern = new RegExp(`^${date}T${minuteOfDay}:${second}\\.[0-9]{3}Z$`);
