/** A day, or a time on a day, as it was written. */
export interface ReadDate {
  /** `2026-06-14`: the day as written, whatever the time zone. */
  day: string;
  /** In UTC: `2026-06-14T05:27:17.335Z`. Null for a day alone, and for a time without a zone. */
  moment: string | null;
  hasTime: boolean;
  /** Whether the difference from UTC was sent. The name of a place alone does not say it. */
  hasZone: boolean;
}

/**
 * Reads a date or a date-time. White space around it does not count.
 *
 * @returns "none" for what systems write if they have no date, such as 0001-01-01; undefined for what can't be read
 */
export function readDate(sent: string): ReadDate | "none" | undefined {
  if (tidyDay.test(sent)) return { day: sent, moment: null, hasTime: false, hasZone: false };
  if (tidyMoment.test(sent)) return { day: sent.slice(0, dayLength), moment: sent, hasTime: true, hasZone: true };
  const text = sent.trim();
  if (text.length > maxDateLength) return undefined;
  if (dayOfNone.test(text)) return "none";
  const parts = dateTime.exec(text);
  if (parts === null) return undefined;
  const [, year = "", , month = "", day = "", hour, minute = "0", second = "0", fraction = "", zone] = parts;
  const date = `${year}-${month}-${day}`;
  const offset = zone === undefined ? 0 : offsetOf(zone);
  if (!isDay(Number(year), Number(month), Number(day)) || offset === undefined) return undefined;
  const [hasTime, hasZone] = [hour !== undefined, zone !== undefined];
  if (!hasTime) return { day: date, moment: null, hasTime, hasZone };
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const start = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  const moment = hasZone ? toMoment(start - offset * msPerMinute, fraction) : null;
  return { day: date, moment, hasTime, hasZone };
}

/** Most dates, and no day that some month does not have. */
const tidyDay = /^(?:19|2[0-9])[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])$/;

/** Most moments: such a day and a time in UTC, with at most microseconds. */
const tidyMoment =
  /^(?:19|2[0-9])[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z$/;
const dayLength = "2026-06-14".length;

/** Of a text without the white space around it. `2026-06-14T07:27:17.123456789+02:00[America/Argentina/Catamarca]` has 65. */
const maxDateLength = 128;
const msPerMinute = 60_000;

/** Year, hyphen, month, day, hour, minute, second, fraction, zone. The numbers may be of no calendar or clock. */
const dateTime =
  /^([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?(?: ?([Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?(?:\[[A-Za-z0-9_+.:/-]+\])?$/;

/**
 * The default of .NET, Go and Python, MySQL's zero date, what PHP makes of that, and the end of time. Each system writes
 * time and zone behind it in its own way, such as Go's `0001-01-01 00:00:00 +0000 UTC`.
 */
const dayOfNone = /^(?:0001-01-01|00010101|0000-00-00|00000000|-0001-11-30|-00011130|9999-12-31|99991231)(?![0-9])/;

function isDay(year: number, month: number, day: number): boolean {
  if (!(year >= 1900 && year <= 2999 && month >= 1 && month <= 12 && day >= 1)) return false;
  return day <= 28 || day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/** Real time zones range from -12:00 to +14:00. */
const maxOffsetMinutes = 14 * 60;

/** @returns minutes, or undefined if no time zone has the offset */
function offsetOf(zone: string): number | undefined {
  const [, sign, hours, minutes = "00"] = /^([+-])([0-9]{2}):?([0-9]{2})?$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  const offset = Number(hours) * 60 + Number(minutes);
  if (Number(minutes) > 59 || offset > maxOffsetMinutes) return undefined;
  return sign === "-" ? -offset : offset;
}

/** PostgreSQL's clock has microseconds, and would round a further digit up to the next second or day. */
const maxFractionDigits = 6;

function toMoment(ms: number, fraction: string): string {
  const seconds = new Date(ms).toISOString().slice(0, "2026-06-14T05:27:17".length);
  return fraction === "" ? `${seconds}Z` : `${seconds}.${fraction.slice(0, maxFractionDigits)}Z`;
}
