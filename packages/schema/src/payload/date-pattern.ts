/**
 * Dates and date-times as regular expressions, including the calendar. `readDate` decides what is accepted; these serve
 * where a pattern is faster, or is all that there is. They use `[0-9]` because `\d` matches other digits in some
 * languages.
 */

const year = "(?:19|2[0-9])[0-9]{2}";
/** Every fourth year, but of the years that end a century only every fourth. */
const leapYear = "(?:(?:19|2[0-9])(?:0[48]|[2468][048]|[13579][26])|2[048]00)";

function dayOf(hyphen: "-" | ""): string {
  const dayOfAnyYear = [
    `(?:0[13578]|1[02])${hyphen}(?:0[1-9]|[12][0-9]|3[01])`,
    `(?:0[469]|11)${hyphen}(?:0[1-9]|[12][0-9]|30)`,
    `02${hyphen}(?:0[1-9]|1[0-9]|2[0-8])`,
  ].join("|");
  return `(?:${year}${hyphen}(?:${dayOfAnyYear})|${leapYear}${hyphen}02${hyphen}29)`;
}

const date = dayOf("-");
/** Excludes 24:00 and leap seconds, because JavaScript and PostgreSQL disagree about which instants they are. */
const minuteOfDay = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
const second = "[0-5][0-9]";
/** Real time zones range from -12:00 to +14:00. */
const offset = "[+-](?:(?:0[0-9]|1[0-3])(?::?[0-5][0-9])?|14(?::?00)?)";

/**
 * The forms that tell the day and the moment: `2026-06-14`, `2026-06-14T07:27:17.335Z`, `…+02:00`, `…+0200`. All that it
 * matches is accepted, and most of what is sent matches.
 */
export const datePattern = new RegExp(
  `^${date}(?:T${minuteOfDay}(?::${second}(?:\\.[0-9]{1,9})?)?(?:Z|[+-](?:(?:0[0-9]|1[0-3]):?[0-5][0-9]|14:?00)))?$`,
);

/** What `readDate` reads, white space, and what systems write if they have no date. It does not limit the length. */
export const acceptedDatePattern: RegExp = (() => {
  const zone = `(?: ?(?:[Zz]|UTC|GMT|${offset}))?(?:\\[[A-Za-z0-9_+.:/-]+\\])?`;
  const time = `(?:[Tt ]${minuteOfDay}(?::${second}(?:\\.[0-9]+)?)?)?${zone}`;
  const none = "0001-01-01|00010101|0000-00-00|00000000|-0001-11-30|-00011130|9999-12-31|99991231";
  return new RegExp(`^\\s*(?:(?:${date}|${dayOf("")})${time}|(?:${none})(?:[^0-9][\\s\\S]*)?)?\\s*$`);
})();

/** The format of `Date.prototype.toISOString`: UTC with milliseconds. */
export const utcInstantPattern = new RegExp(`^${date}T${minuteOfDay}:${second}\\.[0-9]{3}Z$`);
