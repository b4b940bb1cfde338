import { parsePast as parse, parseDuration, parseInstant } from "@booking-events/operations";
import { InvalidArgumentError } from "@commander-js/extra-typings";

/** Parses `90s`, `30m`, `24h`, `7d` or `0`. A number needs a unit, since 30 could mean seconds or days. */
export function parseDurationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError("Give a number and a unit, such as 30m, 24h or 7d, up to ten years, or 0.");
  return ms;
}

/** Parses a future time: an ISO date (00:00 UTC), an ISO date-time with a zone, or a duration from now. */
export function parseExpiry(text: string, now: Date): Date {
  const ms = parseDuration(text);
  const time = ms === undefined ? parseInstant(text) : new Date(now.getTime() + ms);
  if (time === undefined) {
    throw new InvalidArgumentError(
      "Give a time such as 2027-06-30T12:00:00Z or 2027-06-30, or a duration such as 90d.",
    );
  }
  if (time <= now) throw new InvalidArgumentError("The time is not in the future.");
  return time;
}

/** As `parsePast` of the operations. @throws InvalidArgumentError */
export function parsePast(text: string, now: Date): Date {
  const time = parse(text, now);
  if (time === undefined) {
    throw new InvalidArgumentError(
      "Give a time such as 2026-11-20T12:00:00Z, 2026-11-20 or 02:00 (in UTC), or how long ago, such as 2h.",
    );
  }
  return time;
}
