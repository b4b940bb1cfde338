import { BookingEventsError } from "./booking-events-error.ts";
import { retryDelayMs } from "./retry-delay.ts";
import { type Attempt, aborted, type Fault, sendOnce } from "./send-once.ts";

export interface CallLimits {
  attemptTimeoutMs: number;
  totalTimeoutMs: number;
  maxAttempts: number;
  firstRetryDelayMs: number;
}

const longestRetryDelayMs = 30_000;

/**
 * Sends a request until it is answered with 200, refused for good, or out of attempts or time.
 *
 * @throws BookingEventsError
 */
export async function callService<Body>(
  request: Omit<Attempt<Body>, "timeoutMs">,
  { attemptTimeoutMs, totalTimeoutMs, maxAttempts, firstRetryDelayMs }: CallLimits,
  idempotencyKey?: string,
): Promise<Body> {
  const { signal } = request;
  const deadlineMs = performance.now() + totalTimeoutMs;
  const delays = { firstMs: firstRetryDelayMs, longestMs: longestRetryDelayMs };
  for (let attempts = 1; ; attempts += 1) {
    if (signal?.aborted) throw toError(aborted, attempts - 1, idempotencyKey);
    const timeoutMs = Math.min(attemptTimeoutMs, deadlineMs - performance.now());
    const outcome = await sendOnce({ ...request, timeoutMs });
    if ("body" in outcome) return outcome.body;
    const delayMs = retryDelayMs(attempts, outcome.retryAfterMs, delays, Math.random());
    const isLast = attempts >= maxAttempts || performance.now() + delayMs >= deadlineMs;
    if (isLast || !outcome.retryable || outcome.code === "aborted") throw toError(outcome, attempts, idempotencyKey);
    await wait(delayMs, signal);
  }
}

export function toError({ message, ...details }: Fault, attempts: number, idempotencyKey?: string): BookingEventsError {
  return new BookingEventsError(message, { ...details, attempts, idempotencyKey });
}

/** Resolves earlier if the signal is aborted. */
function wait(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, delayMs);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}
