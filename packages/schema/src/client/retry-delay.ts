/**
 * Returns how long to wait after a failed attempt, in milliseconds. It doubles from the first to the longest.
 *
 * The random part spreads the retries of many senders, which would otherwise all return at the same moment. The wait is
 * never shorter than the server asked for.
 *
 * @param attempt the number of attempts so far
 * @param random between 0 and 1
 */
export function retryDelayMs(
  attempt: number,
  retryAfterMs: number | undefined,
  { firstMs, longestMs }: { firstMs: number; longestMs: number },
  random: number,
): number {
  const delayMs = Math.min(firstMs * 2 ** (attempt - 1), longestMs);
  if (retryAfterMs === undefined) return delayMs * (0.5 + random / 2);
  return retryAfterMs + delayMs * random;
}

/**
 * Parses the Retry-After header, which is a number of seconds or a date (RFC 9110, section 10.2.3).
 *
 * @param date the answer's Date header. The local clock may be wrong
 * @returns milliseconds; undefined if there is no valid header
 */
export function parseRetryAfter(header: string | null, date: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1_000;
  const untilMs = parseHttpDate(header);
  if (untilMs === undefined) return undefined;
  return Math.max(0, untilMs - (parseHttpDate(date ?? "") ?? nowMs));
}

/** In the one format that servers may send. `Date.parse` alone also accepts others, in the local time zone. */
function parseHttpDate(text: string): number | undefined {
  const isHttpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text);
  const timeMs = isHttpDate ? Date.parse(text) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
