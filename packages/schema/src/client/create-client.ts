import type { AcceptedBody, DryRunBody } from "../answer-bodies.ts";
import type { BookingInput } from "../booking-input.ts";
import type { BookingReference } from "../booking-reference.ts";
import type { EventKind } from "../event-kind.ts";
import { isIdempotencyKey } from "../idempotency-key.ts";
import type { PayloadValidation } from "../validate-payload.ts";
import { BookingEventsError } from "./booking-events-error.ts";
import { createEventUrl } from "./event-url.ts";
import { retryDelayMs } from "./retry-delay.ts";
import { type Attempt, aborted, type Fault, sendOnce } from "./send-once.ts";

export interface ClientOptions {
  /** The address that we gave you, such as `https://bookings.example.com`. Plain HTTP is for localhost only. */
  baseUrl: string | URL;
  /** Whoever has it can send events in your name: never ship it in a web page or an app. */
  secret: string;
  /**
   * Checks each payload before it is sent: pass `validatePayload` of `@booking-events/schema`. By default, only the
   * service checks, so that bundles stay small.
   */
  validate?: (kind: EventKind, payload: unknown) => PayloadValidation;
  /** The longest time for one attempt, including its whole answer. Default: 10,000 ms. */
  attemptTimeoutMs?: number;
  /** The longest time for a call, with all attempts and the waits between them. Default: 60,000 ms. */
  totalTimeoutMs?: number;
  /** Default: 5. With 1, nothing is retried. */
  maxAttempts?: number;
  /** The delay before the first retry, with a random part. It doubles with each retry, up to 30 s. Default: 1,000 ms. */
  firstRetryDelayMs?: number;
  /** Replaces the global `fetch`, for a proxy for example. */
  fetch?: typeof fetch;
}

export interface SendOptions {
  /**
   * Names the event among the booking's events: 1 to 255 visible ASCII characters. All attempts of a call have the same
   * key. Default: a random one for each call. Set it if you may send the event again after a restart.
   */
  idempotencyKey?: string;
  /** Ends the call. The event may have been accepted even so. */
  signal?: AbortSignal;
}

export interface DryRunOptions extends SendOptions {
  /** The service checks the secret and the payload, and stores nothing. */
  dryRun: true;
}

/** @throws BookingEventsError if the event was not accepted, or if no answer said that it was */
type Send<Payload> = {
  (payload: Payload, options?: SendOptions & { dryRun?: false }): Promise<AcceptedBody>;
  (payload: Payload, options: DryRunOptions): Promise<DryRunBody>;
};

export interface BookingEventsClient {
  /** A booking is new. Send the whole booking. */
  create: Send<BookingInput>;
  /** A booking has changed. Send the whole booking: fields that you omit are removed. */
  update: Send<BookingInput>;
  /** A booking is gone. Send its reference. */
  delete: Send<BookingReference>;
}

const longestRetryDelayMs = 30_000;
/** `setTimeout` fires at once if the delay is longer. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Creates a client, which sends events until they are accepted, refused for good, or out of attempts or time.
 *
 * It retries 408, 429, 5xx, time-outs and broken connections, after `Retry-After` or with growing delays. The secret is
 * in no property, message or stack.
 *
 * @throws TypeError if an option is invalid
 */
export function createBookingEventsClient(options: ClientOptions): BookingEventsClient {
  const { secret, validate, fetch = globalThis.fetch } = options;
  const eventUrl = createEventUrl(options.baseUrl, secret);
  const limits = readLimits(options);

  async function send(
    kind: EventKind,
    payload: object,
    { idempotencyKey = crypto.randomUUID(), dryRun = false, signal }: SendOptions & { dryRun?: boolean } = {},
  ): Promise<AcceptedBody | DryRunBody> {
    if (!isIdempotencyKey(idempotencyKey)) {
      throw new TypeError("idempotencyKey must have 1 to 255 visible ASCII characters.");
    }
    // Every attempt must send the same bytes, even if the caller changes the payload meanwhile.
    const body = JSON.stringify(payload);
    const violationList = validate === undefined ? [] : findViolations(validate(kind, JSON.parse(body)));
    if (violationList.length > 0) {
      const message = "The payload violates rules. It was not sent. See violationList.";
      throw new BookingEventsError(message, {
        ...{ code: "invalid-data", violationList, retryable: false, attempts: 0, idempotencyKey },
      });
    }
    return sendUntilAnswered({ url: eventUrl(kind), secret, body, idempotencyKey, dryRun, signal, fetch }, limits);
  }

  // The overloads of `Send` say which body the options lead to, and `sendOnce` returns no other.
  const sender = (kind: EventKind) => send.bind(undefined, kind) as Send<object>;
  return Object.freeze({ create: sender("create"), update: sender("update"), delete: sender("delete") });
}

function findViolations(result: PayloadValidation) {
  return result.success ? [] : result.violationList;
}

type Limits = ReturnType<typeof readLimits>;

function readLimits({
  attemptTimeoutMs = 10_000,
  totalTimeoutMs = 60_000,
  maxAttempts = 5,
  firstRetryDelayMs = 1_000,
}: ClientOptions) {
  const limits = { attemptTimeoutMs, totalTimeoutMs, maxAttempts, firstRetryDelayMs };
  for (const [name, value] of Object.entries(limits)) {
    if (!(value >= 1 && value <= longestTimerMs)) {
      throw new TypeError(`${name} must be a number from 1 to ${longestTimerMs}.`);
    }
  }
  return limits;
}

async function sendUntilAnswered(
  request: Omit<Attempt, "timeoutMs">,
  { attemptTimeoutMs, totalTimeoutMs, maxAttempts, firstRetryDelayMs }: Limits,
): Promise<AcceptedBody | DryRunBody> {
  const { idempotencyKey, signal } = request;
  const deadlineMs = performance.now() + totalTimeoutMs;
  const delays = { firstMs: firstRetryDelayMs, longestMs: longestRetryDelayMs };
  for (let attempts = 1; ; attempts += 1) {
    if (signal?.aborted) throw toError(aborted, attempts - 1, idempotencyKey);
    const timeoutMs = Math.min(attemptTimeoutMs, deadlineMs - performance.now());
    const outcome = await sendOnce({ ...request, timeoutMs });
    if (outcome.success) return outcome.body;
    const delayMs = retryDelayMs(attempts, outcome.retryAfterMs, delays, Math.random());
    const isLast = attempts >= maxAttempts || performance.now() + delayMs >= deadlineMs;
    if (isLast || !outcome.retryable || outcome.code === "aborted") throw toError(outcome, attempts, idempotencyKey);
    await wait(delayMs, signal);
  }
}

function toError({ success: _, message, ...details }: Fault, attempts: number, idempotencyKey: string) {
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
  });
}
