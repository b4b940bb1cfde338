/**
 * How often and when an event is retried that failed although PostgreSQL takes writes: by a mistake in our code, or
 * because somebody keeps a row locked. An event whose content is at fault is not retried (see the worker's
 * `classify-fault.ts`), and an outage costs no attempt (`wait-out-outage.ts`).
 *
 * The delay before attempt n+1 is 1 s × 3^(n−1), at most 4 h, multiplied by a random factor from 0.5 to 1, so events
 * that failed together are not retried together.
 *
 * | after attempt | at most | total at most |
 * |---:|---:|---:|
 * |  1 |        1 s |        1 s |
 * |  2 |        3 s |        4 s |
 * |  3 |        9 s |       13 s |
 * |  4 |       27 s |       40 s |
 * |  5 |   1 min 21 |    2 min 1 |
 * |  6 |    4 min 3 |    6 min 4 |
 * |  7 |   12 min 9 |  18 min 13 |
 * |  8 |  36 min 27 |  54 min 40 |
 * |  9 | 1 h 49 min | 2 h 44 min |
 * | 10 |        4 h | 6 h 44 min |
 * | 11 |        4 h |    10 h 44 |
 * | 12 |        4 h |    14 h 44 |
 * | 13 |        4 h |    18 h 44 |
 * | 14 |        4 h |    22 h 44 |
 *
 * Attempt 15 is the last. If it fails, the event becomes a dead letter.
 */
export const maxAttempts = 15;

const firstDelayMs = 1_000;
const maxDelayMs = 4 * 60 * 60 * 1_000;

/**
 * @param attemptsMade the number of failed attempts, at least 1
 * @param random a number in [0, 1)
 * @returns milliseconds to wait before the next attempt
 */
export function retryDelayMs(attemptsMade: number, random: number = Math.random()): number {
  const fullDelayMs = Math.min(firstDelayMs * 3 ** (attemptsMade - 1), maxDelayMs);
  return Math.round(fullDelayMs * (0.5 + random / 2));
}
