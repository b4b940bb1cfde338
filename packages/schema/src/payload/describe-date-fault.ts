/** Matches dates and times with any numbers in them; `readDate` decides which numbers are valid. */
const partsPattern =
  /^(?<year>[0-9]{4})(?<hyphen>-?)(?<month>[0-9]{2})\k<hyphen>(?<day>[0-9]{2})(?:[Tt ](?<hour>[0-9]{2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2})(?<fraction>[.,][0-9]*)?)?)?(?<zone>.*)$/s;

/** Longer texts are no dates, whatever they begin with. */
const maxDescribedLength = 128;

/**
 * Describes why a text is not a valid date or date-time, in words that follow "got" and do not repeat the text.
 *
 * @param text not blank, and not read by `readDate`
 */
export function describeDateFault(text: string): string {
  const trimmed = text.trim();
  if (trimmed.length > maxDescribedLength) return "a longer string";
  if (isTimestamp(trimmed)) return "a Unix timestamp";
  const parts = partsPattern.exec(trimmed)?.groups;
  if (parts === undefined) return "another date format";
  return describeDay(parts) ?? describeTime(parts) ?? describeZone(parts);
}

/** Eight digits are more likely a date. */
function isTimestamp(text: string): boolean {
  return /^-?[0-9]+(?:\.[0-9]+)?$/.test(text) && !/^[0-9]{8}$/.test(text);
}

type Parts = Record<string, string | undefined>;

function describeDay({ year, month, day }: Parts): string | undefined {
  if (Number(year) < 1900 || Number(year) > 2999) return "a year before 1900 or after 2999";
  if (Number(month) < 1 || Number(month) > 12) return "a month that does not exist";
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) < 1 || Number(day) > daysInMonth ? "a day that does not exist in that month" : undefined;
}

function describeTime({ hour = "0", minute = "0", second = "0", fraction }: Parts): string | undefined {
  if (hour === "24") return "hour 24, which is 00:00 on the next day";
  if (Number(hour) > 23) return "an hour above 23";
  if (Number(minute) > 59) return "a minute above 59";
  if (Number(second) > 59) return "a second above 59, such as a leap second";
  if (fraction?.startsWith(",")) return "a comma instead of a point before the fractional seconds";
  return fraction === "." ? "a point without fractional seconds after it" : undefined;
}

function describeZone({ hour, zone = "" }: Parts): string {
  if (/^ ?[+-][0-9]{2}(?::?[0-9]{2})?(?:\[[^\]]*\])?$/.test(zone)) return "a UTC offset that no time zone has";
  if (hour === undefined) return "another date format";
  return /^[.,]/.test(zone) ? "fractional minutes" : "a time zone in another format";
}
