/** Matches dates and times with any numbers in them; `datePattern` decides which numbers are valid. */
const partsPattern =
  /^(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})(?:(?<separator>[Tt ])(?<hour>[0-9]{2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2})(?<fraction>[.,][0-9]*)?)?(?<zone>.*))?$/s;

/** As in `datePattern`. */
const maxFractionDigits = 9;

/**
 * Describes why a text is not a valid date or date-time, in words that follow "got" and do not repeat the text.
 *
 * @param text non-empty, and not matched by `datePattern`
 */
export function describeDateFault(text: string): string {
  if (text !== text.trim()) return "a string with leading or trailing white space";
  if (/^[0-9]{8}$/.test(text)) return "a date without hyphens";
  if (/^-?[0-9]+(?:\.[0-9]+)?$/.test(text)) return "a Unix timestamp";
  const parts = partsPattern.exec(text)?.groups;
  if (parts === undefined) return "another date format";
  return describeDay(parts) ?? describeTime(parts) ?? describeZone(parts["zone"] ?? "");
}

type Parts = Record<string, string | undefined>;

function describeDay({ year, month, day }: Parts): string | undefined {
  if (Number(year) < 1900 || Number(year) > 2999) return "a year before 1900 or after 2999";
  if (Number(month) < 1 || Number(month) > 12) return "a month that does not exist";
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) < 1 || Number(day) > daysInMonth ? "a day that does not exist in that month" : undefined;
}

function describeTime({ separator, hour, minute, second = "0", fraction }: Parts): string | undefined {
  if (separator === " ") return "a space instead of T";
  if (separator === "t") return "a lowercase t";
  if (hour === "24") return "hour 24, which is 00:00 on the next day";
  if (Number(hour) > 23) return "an hour above 23";
  if (Number(minute) > 59) return "a minute above 59";
  if (Number(second) > 59) return "a second above 59, such as a leap second";
  if (fraction?.startsWith(",")) return "a comma instead of a point before the fractional seconds";
  if (fraction === ".") return "a point without fractional seconds after it";
  const isTooLong = fraction !== undefined && fraction.length > ".".length + maxFractionDigits;
  return isTooLong ? `fractional seconds with more than ${maxFractionDigits} digits` : undefined;
}

function describeZone(zone: string): string {
  if (zone === "") return "a date-time without a time zone";
  if (/^[.,]/.test(zone)) return "fractional minutes";
  if (zone === "z") return "a lowercase z";
  if (/^[+-][0-9]{2}$/.test(zone)) return "a UTC offset without minutes";
  if (/^[+-][0-9]{2}:?[0-9]{2}$/.test(zone)) return "a UTC offset that no time zone has";
  return "a time zone in another format";
}
