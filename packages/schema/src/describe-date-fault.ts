/** Any number that stands where a date or a time has one; the pattern of dates says which ones are right. */
const partsPattern =
  /^(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})(?:(?<separator>[Tt ])(?<hour>[0-9]{2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2})(?<fraction>[.,][0-9]*)?)?(?<zone>.*))?$/s;

/** As in `datePattern`. */
const maxFractionDigits = 9;

/**
 * What keeps a text from being a date or a date-time, in words that do not repeat it and follow "got".
 *
 * @param text not empty, and not matched by `datePattern`
 */
export function describeDateFault(text: string): string {
  if (text !== text.trim()) return "a string with white space around it";
  if (/^[0-9]{8}$/.test(text)) return "a date without hyphens";
  if (/^-?[0-9]+(?:\.[0-9]+)?$/.test(text)) return "an epoch number";
  const parts = partsPattern.exec(text)?.groups;
  if (parts === undefined) return "another format";
  return describeDay(parts) ?? describeTime(parts) ?? describeZone(parts["zone"] ?? "");
}

type Parts = Record<string, string | undefined>;

function describeDay({ year, month, day }: Parts): string | undefined {
  if (Number(year) < 1900 || Number(year) > 2999) return "a year before 1900 or after 2999";
  if (Number(month) < 1 || Number(month) > 12) return "a month that does not exist";
  const daysInMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) < 1 || Number(day) > daysInMonth ? "a day that its month does not have" : undefined;
}

function describeTime({ separator, hour, minute, second = "0", fraction }: Parts): string | undefined {
  if (separator === " ") return "a space in place of the T";
  if (separator === "t") return "a t in lower case";
  if (hour === "24") return "hour 24, which is 00:00 of the next day";
  if (Number(hour) > 23) return "an hour beyond 23";
  if (Number(minute) > 59) return "a minute beyond 59";
  if (Number(second) > 59) return "a second beyond 59, such as a leap second";
  if (fraction?.startsWith(",")) return "a comma before the fraction of a second, in place of a point";
  if (fraction === ".") return "a point without a fraction of a second behind it";
  const isTooLong = fraction !== undefined && fraction.length > ".".length + maxFractionDigits;
  return isTooLong ? `a fraction of a second of more than ${maxFractionDigits} digits` : undefined;
}

function describeZone(zone: string): string {
  if (zone === "") return "a date-time without a zone";
  if (/^[.,]/.test(zone)) return "a fraction of a minute";
  if (zone === "z") return "a z in lower case";
  if (/^[+-][0-9]{2}$/.test(zone)) return "an offset without minutes";
  if (/^[+-][0-9]{2}:?[0-9]{2}$/.test(zone)) return "an offset that no zone has";
  return "a zone in another format";
}
