import { InvalidArgumentError } from "@commander-js/extra-typings";

const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const maxMs = 10 * 366 * unitsMs.d;

/** Parses `90s`, `30m`, `24h`, `7d` or `0`. A number needs a unit, since 30 could mean seconds or days. */
export function parseDurationMs(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined) throw new InvalidArgumentError("Give a number and a unit, such as 30m, 24h or 7d, or 0.");
  return ms;
}

/** Parses a future time: an ISO date (00:00 UTC), an ISO date-time with a zone, or a duration from now. */
export function parseExpiry(text: string, now: Date): Date {
  const ms = durationMs(text);
  const time = ms === undefined ? parseInstant(text) : new Date(now.getTime() + ms);
  if (time === undefined) {
    throw new InvalidArgumentError(
      "Give a time such as 2027-06-30T12:00:00Z or 2027-06-30, or a duration such as 90d.",
    );
  }
  if (time <= now) throw new InvalidArgumentError("The time is not in the future.");
  return time;
}

/**
 * Parses a past time: an ISO date (00:00 UTC), an ISO date-time with a zone, a duration before now, or the last time at
 * which it was so late, in UTC, such as 02:00.
 */
export function parsePast(text: string, now: Date): Date {
  const ms = durationMs(text);
  const time = ms === undefined ? (parseTimeOfDay(text, now) ?? parseInstant(text)) : new Date(now.getTime() - ms);
  if (time === undefined || time.getTime() < 0) {
    throw new InvalidArgumentError(
      "Give a time such as 2026-11-20T12:00:00Z, 2026-11-20 or 02:00 (in UTC), or how long ago, such as 2h.",
    );
  }
  return time;
}

function parseTimeOfDay(text: string, now: Date): Date | undefined {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hours === undefined || minutes === undefined) return undefined;
  const today = new Date(now);
  today.setUTCHours(Number(hours), Number(minutes), 0, 0);
  return today > now ? new Date(today.getTime() - unitsMs.d) : today;
}

function durationMs(text: string): number | undefined {
  if (text === "0") return 0;
  const [, digits, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (digits === undefined || unit === undefined) return undefined;
  const ms = Number(digits) * unitsMs[unit as keyof typeof unitsMs];
  if (ms > maxMs) throw new InvalidArgumentError("The duration is longer than ten years.");
  return ms;
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
