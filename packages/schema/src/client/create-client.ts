import type { Activity } from "../answers/activity.ts";
import type { AcceptedBody, DryRunBody } from "../answers/answer-bodies.ts";
import type {
  BookingStatus,
  Difference,
  ListedReference,
  Receipt,
  ReconciliationCounts,
} from "../answers/lookup-bodies.ts";
import { isIdempotencyKey } from "../envelope/idempotency-key.ts";
import type { BookingFieldName, BookingInput } from "../payload/booking-input.ts";
import type { BookingReference } from "../payload/booking-reference.ts";
import type { EventKind } from "../payload/event-kind.ts";
import type { ReferenceKind } from "../payload/reference-rule.ts";
import type { PayloadValidation } from "../payload/validate-payload.ts";
import { sendBatch } from "./batch.ts";
import type { BatchAnswer, BatchEvent } from "./batch-event.ts";
import { BookingEventsError } from "./booking-events-error.ts";
import { type CallLimits, callService } from "./call-service.ts";
import { createEventUrl } from "./event-url.ts";
import { reconcileList } from "./reconcile.ts";
import { acceptJson } from "./send-once.ts";

export interface ClientOptions {
  /** The address that we gave you, such as `https://bookings.example.com`. Plain HTTP is for localhost only. */
  baseUrl: string | URL;
  /** The address for questions, if it is another one. */
  lookupUrl?: string | URL | undefined;
  /** Whoever has it can send events in your name: never ship it in a web page or an app. */
  secret: string;
  /**
   * Checks each payload of `create`, `update` and `delete` before it is sent, by rules that you have. By default, only the
   * service checks, so that the client stays small.
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
   * Names the event among the booking's events: 1 to 255 visible ASCII characters, with spaces inside. All attempts of a call have the same
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

export interface BatchOptions {
  /** Ends the call. The events that are under way may have been accepted even so. */
  signal?: AbortSignal;
  /** The service checks the secret and the payloads, and stores nothing. */
  dryRun?: boolean;
}

export interface AskOptions {
  /** Ends the call. */
  signal?: AbortSignal;
}

export interface ActivityOptions extends AskOptions {
  /** One of the last seven days, in UTC, such as 2027-05-02. Default: the last 48 hours. */
  day?: string;
}
export interface BookingOptions extends AskOptions {
  /** Default: trip. */
  referenceKind?: ReferenceKind;
  /** The answer then has what the service reads of these fields, in `readings`. `all`: of every field that it reads. */
  fields?: readonly BookingFieldName[] | "all";
}

export interface ReconcileOptions extends AskOptions {
  /** The longest time until the last difference has been read. Default: 600,000 ms. */
  timeoutMs?: number;
  /** You have no active booking, so the list may be empty. Otherwise, the service refuses it. Default: false. */
  allowEmpty?: boolean;
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
  /**
   * Sends many events, some hundred in a request, and yields an answer for each, in their order, when it is decided. What
   * fails for the moment is sent again, with the same keys.
   *
   * @throws BookingEventsError if the rest cannot be sent now; what the list throws
   */
  batch(events: Iterable<BatchEvent> | AsyncIterable<BatchEvent>, options?: BatchOptions): AsyncGenerator<BatchAnswer>;
  /**
   * Asks what became of an event. Undefined: you have no such event, or it is so old that it has left the log.
   *
   * @throws BookingEventsError if there is no answer
   */
  receipt(eventId: string, options?: AskOptions): Promise<Receipt | undefined>;
  /**
   * Asks how a booking stands. Undefined: the service has no such booking.
   *
   * @throws BookingEventsError if there is no answer
   */
  booking(reference: string, options?: BookingOptions): Promise<BookingStatus | undefined>;
  /**
   * Asks what the service has received from you lately, and what it refused.
   *
   * @throws BookingEventsError if there is no answer
   */
  activity(options?: ActivityOptions): Promise<Activity>;
  /**
   * Compares all bookings that are active at your end with those of the service, and yields each difference. The list is
   * sent while it is read, so neither side holds it. Nothing is retried.
   *
   * @throws BookingEventsError if the answer is not complete; what the list throws
   */
  reconcile(
    bookings: Iterable<ListedReference> | AsyncIterable<ListedReference>,
    options?: ReconcileOptions,
  ): AsyncGenerator<Difference, ReconciliationCounts>;
}

const defaultReconcileTimeoutMs = 600_000;
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
  const questions = createQuestions(options, limits);

  async function send(
    kind: EventKind,
    payload: object,
    { idempotencyKey = crypto.randomUUID(), dryRun = false, signal }: SendOptions & { dryRun?: boolean } = {},
  ): Promise<AcceptedBody | DryRunBody> {
    requireKey(idempotencyKey);
    requireNoDates(payload);
    // Every attempt must send the same bytes, even if the caller changes the payload meanwhile.
    const body = JSON.stringify(payload);
    if (validate !== undefined) requireValid(validate(kind, JSON.parse(body)), idempotencyKey);
    const headers: Record<string, string> = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    if (dryRun) headers["X-Dry-Run"] = "true";
    const init = { method: "POST", headers, body };
    const accept = acceptJson<AcceptedBody | DryRunBody>(dryRun ? isDryRunBody : isAcceptedBody);
    return callService({ url: eventUrl(kind), init, accept, secret, signal, fetch }, limits, idempotencyKey);
  }

  // The overloads of `Send` say which body the options lead to, and `isAnswer` accepts no other.
  const sender = (kind: EventKind) => send.bind(undefined, kind) as Send<object>;
  return Object.freeze<BookingEventsClient>({
    create: sender("create"),
    update: sender("update"),
    delete: sender("delete"),
    batch(events, { signal, dryRun = false } = {}) {
      const parts = withKeys(events);
      return sendBatch({ url: eventUrl("batch"), secret, signal, fetch, dryRun, limits }, parts);
    },
    ...questions,
  });
}

type Questions = Pick<BookingEventsClient, "receipt" | "booking" | "activity" | "reconcile">;

function createQuestions(options: ClientOptions, limits: CallLimits): Questions {
  const { secret, fetch = globalThis.fetch } = options;
  const lookupUrl = createEventUrl(options.lookupUrl ?? options.baseUrl, secret, "lookupUrl");

  function get<Body>(url: string, isAnswer: (body: unknown) => body is Body, { signal }: AskOptions): Promise<Body> {
    return callService({ url, init: { method: "GET" }, accept: acceptJson(isAnswer), secret, signal, fetch }, limits);
  }

  return {
    receipt(eventId, options = {}) {
      const url = `${lookupUrl("receipt")}/${encodeURIComponent(eventId)}`;
      return unlessRefused("no-such-event", get(url, isReceipt, options));
    },
    booking(reference, { referenceKind = "trip", fields = [], ...options } = {}) {
      const query = new URLSearchParams({ reference, referenceKind });
      if (fields.length > 0) query.set("fields", String(fields));
      return unlessRefused("no-such-booking", get(`${lookupUrl("booking")}?${query}`, isBookingStatus, options));
    },
    activity({ day, ...options } = {}) {
      const query = day === undefined ? "" : `?${new URLSearchParams({ day })}`;
      return get(`${lookupUrl("activity")}${query}`, isActivity, options);
    },
    reconcile(bookings, { signal, timeoutMs = defaultReconcileTimeoutMs, allowEmpty = false } = {}) {
      requireLimit("timeoutMs", timeoutMs);
      const url = `${lookupUrl("reconcile")}${allowEmpty ? "?allowEmpty=true" : ""}`;
      return reconcileList({ url, secret, signal, timeoutMs, fetch }, bookings);
    },
  };
}

/** Returns undefined if it is refused with this code. */
async function unlessRefused<Body>(code: string, answer: Promise<Body>): Promise<Body | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof BookingEventsError && error.code === code) return undefined;
    throw error;
  }
}

const isAcceptedBody = (body: unknown): body is AcceptedBody => {
  const { success, eventId } = Object(body);
  return success === true && typeof eventId === "string";
};
/** A dry run that stored the event is no success. */
const isDryRunBody = (body: unknown): body is DryRunBody =>
  Object(body).success === true && Object(body).dryRun === true;
const isReceipt = (body: unknown): body is Receipt => {
  const { eventId, status } = Object(body);
  return typeof eventId === "string" && typeof status === "string";
};
const isBookingStatus = (body: unknown): body is BookingStatus => typeof Object(body).state === "string";

const isActivity = (body: unknown): body is Activity => Array.isArray(Object(body).hours);

/** @throws TypeError */
function requireKey(idempotencyKey: string): void {
  // HTTP leaves out spaces around a header's value, and the service quotes.
  if (isIdempotencyKey(idempotencyKey) && !/^ | $|^".*"$/.test(idempotencyKey)) return;
  throw new TypeError(
    "idempotencyKey must have 1 to 255 visible ASCII characters, with spaces only inside, and no quotes around.",
  );
}

/**
 * JSON would write a Date in UTC, where a local midnight is the day before.
 *
 * @throws TypeError
 */
function requireNoDates(payload: object): void {
  const fields = payload as Record<string, unknown>;
  const name = ["consumerTripArrivalDate", "consumerTripReturnDate"].find((each) => fields[each] instanceof Date);
  if (name === undefined) return;
  throw new TypeError(
    `${name} is a Date, which has no zone. Send the day, such as "2027-06-14", or a time with its zone.`,
  );
}

async function* withKeys(events: Iterable<BatchEvent> | AsyncIterable<BatchEvent>) {
  for await (const { kind, payload, idempotencyKey = crypto.randomUUID() } of events) {
    requireKey(idempotencyKey);
    requireNoDates(payload);
    yield { kind, payload, idempotencyKey };
  }
}

/** @throws BookingEventsError */
function requireValid(result: PayloadValidation, idempotencyKey: string): void {
  if (result.success) return;
  throw new BookingEventsError("The payload violates rules. It was not sent. See violationList.", {
    code: "invalid-data",
    violationList: result.violationList,
    retryable: false,
    attempts: 0,
    idempotencyKey,
  });
}

function readLimits({
  attemptTimeoutMs = 10_000,
  totalTimeoutMs = 60_000,
  maxAttempts = 5,
  firstRetryDelayMs = 1_000,
}: ClientOptions): CallLimits {
  const limits = { attemptTimeoutMs, totalTimeoutMs, maxAttempts, firstRetryDelayMs };
  for (const [name, value] of Object.entries(limits)) requireLimit(name, value);
  return limits;
}

/** @throws TypeError */
function requireLimit(name: string, value: number): void {
  if (value >= 1 && value <= longestTimerMs) return;
  throw new TypeError(`${name} must be a number from 1 to ${longestTimerMs}.`);
}
