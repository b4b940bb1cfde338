const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses a time as people write it of the past: a duration before now, or the last time at which it was so late, in UTC,
 * such as 02:00. An ISO date (00:00 UTC), an ISO date-time with a zone and one as the console shows it may be of the
 * future.
 */
export function parsePast(text: string, now: Date): Date | undefined {
  const ms = parseDuration(text);
  const time =
    ms === undefined ? (parseTimeOfDay(text, now) ?? parseInstant(toIso(text))) : new Date(now.getTime() - ms);
  return time === undefined || !(time.getTime() >= 0) ? undefined : time;
}

/** The console and PostgreSQL show times with a space, and in UTC. */
function toIso(text: string): string {
  return text.replace(/^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?)(?: UTC)?$/, "$1T$2Z");
}

const maxDurationMs = 10 * 366 * unitsMs.d;

/** @returns milliseconds, of `90s`, `30m`, `24h`, `7d` or `0`, and not more than ten years */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  const [, digits, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(digits) * unitsMs[unit as keyof typeof unitsMs];
  return ms <= maxDurationMs ? ms : undefined;
}

function parseTimeOfDay(text: string, now: Date): Date | undefined {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hours === undefined || minutes === undefined) return undefined;
  const today = new Date(now);
  today.setUTCHours(Number(hours), Number(minutes), 0, 0);
  return today > now ? new Date(today.getTime() - unitsMs.d) : today;
}

/** Parses an ISO date (00:00 UTC) or an ISO date-time with a zone. */
export function parseInstant(text: string): Date | undefined {
  const [, day] = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/.exec(text) ?? [];
  if (day === undefined || !isCalendarDay(day)) return undefined;
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/** Needed since JavaScript reads 31 February as 3 March. */
function isCalendarDay(day: string): boolean {
  const time = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(day);
}
