import { createHash } from "node:crypto";
import type { Outcome } from "@booking-events/bookings";
import {
  DelayDelivery,
  type Delivery,
  type GivenUpEvent,
  LostClaim,
  ReleaseDelivery,
  type Verdict,
} from "@booking-events/queue";
import { inSpan, type Logger, type Span, safeMessage, type Tracing } from "@booking-events/runtime";
import { bookingReferenceOf, parseEnvelopeText, referenceKindOf } from "@booking-events/schema";
import type { DeadLetterToWrite } from "@booking-events/store";
import { InvalidEnvelope, LaterVersion, type QueuedEvent } from "../batches/read-envelope.ts";
import type { AppliedEvent } from "../batches/take-batch.ts";
import { describeFault, isConstraintViolation } from "../outages/describe-fault.ts";
import type { OutageGate } from "../outages/wait-out-outage.ts";

export interface ProcessedEvent {
  /** Null if the event can't be read. */
  kind: string | null;
  partner: string | null;
  outcome: Outcome | "dead" | "attempt-failed" | "later-version";
  /** When ingest queued the event, if it has been applied; in epoch milliseconds. */
  queuedAtMs?: number;
}

export interface ProcessOptions {
  /**
   * Applies the event, and waits out outages.
   *
   * @throws InvalidEnvelope, LaterVersion; why the event can't be applied; the signal's reason when it aborts
   */
  apply: (event: QueuedEvent) => Promise<AppliedEvent>;
  /** Returns the delivery's text byte for byte as in Redis. */
  readBytes: (delivery: Delivery) => Promise<Buffer>;
  /** @returns the event's outcome if it is in the log. Then no dead letter is written */
  writeDeadLetter: (letter: DeadLetterToWrite) => Promise<Outcome | undefined>;
  /** Whether the event's dead letter is closed, for example because it was discarded after the replay began. */
  isDeadLetterClosed: (eventId: string) => Promise<boolean>;
  /** Closes the dead letter of an event that has been applied. */
  closeDeadLetter: (eventId: string, outcome: Outcome) => Promise<unknown>;
  outageGate: OutageGate;
  /** Counts each event that is finished, with its outcome or "dead", and each failed attempt. */
  count: (what: ProcessedEvent) => void;
  /** Called for each delivery of an event that waits for a worker of a later release. */
  onLaterVersion: (eventId: string) => void;
  /** Counts failed attempts by the code that the log has too. */
  countFault: (code: string) => void;
  /** Undefined if traces are off. */
  tracing?: Tracing | undefined;
  logger: Logger;
  /** Aborts when the worker stops. Events that wait for the database then go back to the queue. */
  signal: AbortSignal;
}

/** The event was accepted, and its content is lost: only its partner can send it again. */
const expiredMessage =
  'event recorded without its content and not applied, since it is older than the log: see "EventsExpired" in docs/runbook.md';

/**
 * How long an event of a later release waits for its next delivery, at least. Ten thousand such events then cost about
 * a hundred deliveries a second. A worker manages thousands.
 */
const laterVersionDelayMs = 60_000;

/** The event could not be applied. BullMQ stores this message, and delivers the event again by the retry policy. */
class AttemptFailed extends Error {
  override name = "AttemptFailed";
  readonly [safeMessage] = true;
}

/**
 * Processes one delivery. Afterwards the event is applied in PostgreSQL, or it is a dead letter.
 *
 * @throws AttemptFailed, DelayDelivery if the event should be delivered again later; ReleaseDelivery if the worker
 *   stops first
 */
export async function processDelivery(delivery: Delivery, options: ProcessOptions): Promise<void> {
  const { attempt, isReplay } = delivery;
  try {
    if (isReplay && (await throughOutages(() => options.isDeadLetterClosed(toUuid(delivery.jobId)), options))) {
      options.logger.info({ eventId: delivery.jobId }, "dropped a replay, since its dead letter is closed");
      return;
    }
    if (delivery.damage !== null) throw new InvalidEnvelope(delivery.damage);
    const { eventId, partner, kind, sequence, outcome } = await releaseOnStop(() => options.apply(delivery), options);
    if (isReplay) await throughOutages(() => options.closeDeadLetter(eventId, outcome), options);
    options.count({ kind, partner, outcome, queuedAtMs: delivery.queuedAtMs });
    const logged = { eventId, partner, kind, sequence, outcome, attempt };
    if (outcome === "expired") options.logger.warn(logged, expiredMessage);
    else options.logger.info(logged, "event applied");
  } catch (error) {
    // If the claim was lost, another process decides about the event.
    if (error instanceof ReleaseDelivery || error instanceof LostClaim) throw error;
    await fail(delivery, error, options);
  }
}

/** @throws AttemptFailed, DelayDelivery unless the event is given up */
async function fail(delivery: Delivery, error: unknown, options: ProcessOptions): Promise<void> {
  if (error instanceof LaterVersion) {
    options.count({ kind: null, partner: null, outcome: "later-version" });
    options.onLaterVersion(delivery.jobId);
    throw new DelayDelivery(laterVersionDelayMs * (1 + Math.random()));
  }
  if (error instanceof InvalidEnvelope) {
    const message = `The queued event is invalid: ${error.problem}`;
    return await writeLetter(delivery, { code: "INVALID_ENVELOPE", message }, options);
  }
  const fault = describeFault(error);
  if (fault.isOfContent || delivery.isLastAttempt) return await writeLetter(delivery, fault, options);
  const { eventId, partner, kind } = identify(delivery);
  options.count({ kind, partner, outcome: "attempt-failed" });
  options.countFault(fault.code);
  options.logger[isConstraintViolation(fault) ? "error" : "warn"](
    { eventId, partner, kind, code: fault.code, attempt: delivery.attempt, err: error },
    "attempt failed",
  );
  throw new AttemptFailed(`${fault.code}: ${fault.message}`);
}

/** Something else may kill a worker while it tries an event alone, but not this often. */
const maxDeaths = 3;

/**
 * Decides about an event that BullMQ has given up by itself.
 *
 * BullMQ gives up an event whose workers died repeatedly. That says little about the event: the worker held many
 * others, and a worker also seems dead if Redis hangs. So the event is tried alone. It becomes a dead letter only if
 * workers die of that.
 *
 * @param options.applyAlone applies the event immediately, in a transaction of its own
 * @throws ReleaseDelivery if the worker stops first; LostClaim if another process has taken the event over
 */
export async function judgeGivenUp(
  { delivery, reason, deaths, runTrial }: GivenUpEvent<Delivery>,
  options: ProcessOptions & { applyAlone: ProcessOptions["apply"] },
): Promise<Verdict> {
  if (!/stalled/.test(reason) && delivery.damage === null) {
    await writeLetter(delivery, { code: "GIVEN_UP", message: "The queue gave up the event." }, options);
    return "take out";
  }
  if (deaths >= maxDeaths) {
    const message = "Every worker that tried the event alone died.";
    await writeLetter(delivery, { code: "STALLED", message }, options);
    return "take out";
  }
  // A trial ends when an outage begins. A worker that waits for PostgreSQL may die for any reason.
  const apply: ProcessOptions["apply"] = (event) =>
    options.outageGate.run(() => runTrial(() => options.applyAlone(event)));
  try {
    await processDelivery(delivery, { ...options, apply });
    return "take out";
  } catch (error) {
    if (error instanceof AttemptFailed || error instanceof DelayDelivery) return "put back";
    throw error;
  }
}

type Identity = Pick<DeadLetterToWrite, "eventId" | "partner" | "kind" | "referenceKind" | "reference" | "sequence"> & {
  traceparent: string | null;
};

/** Reads as much as possible from the envelope. */
function identify(delivery: Delivery): Identity {
  const parsed = parseEnvelopeText(delivery.text);
  if (!parsed.success)
    return {
      ...{ eventId: toUuid(delivery.jobId), partner: null, kind: null },
      ...{ referenceKind: null, reference: null, sequence: null, traceparent: null },
    };
  const { eventId, partner, kind, sequence, traceparent = null, payload } = parsed.envelope;
  return {
    ...{ eventId, partner, kind, sequence, traceparent },
    ...{ referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload) },
  };
}

async function writeLetter(
  delivery: Delivery,
  fault: { code: string; message: string },
  options: ProcessOptions,
): Promise<void> {
  const { traceparent, ...identity } = identify(delivery);
  const letter: DeadLetterToWrite = {
    ...identity,
    errorCode: fault.code,
    // The message may name a key that PostgreSQL can't hold.
    error: fault.message.toWellFormed().replaceAll("\0", "\\0"),
    attempts: delivery.attempt,
    envelope: await options.readBytes(delivery),
  };
  const span = startLetterSpan(options.tracing, traceparent, letter);
  const outcome = await inSpan(span, () => throughOutages(() => options.writeDeadLetter(letter), options));
  const { eventId, partner, kind, attempts } = letter;
  if (outcome !== undefined) {
    options.count({ kind, partner, outcome });
    options.logger.warn(
      { eventId, partner, kind, outcome, code: fault.code },
      "a delivery failed, but the event had been applied before",
    );
    return;
  }
  options.count({ kind, partner, outcome: "dead" });
  options.logger.error({ eventId, partner, kind, code: fault.code, attempts }, "event became a dead letter");
}

/** Continues the event's own trace, if it is sampled. */
function startLetterSpan(
  tracing: Tracing | undefined,
  traceparent: string | null,
  { eventId, partner, kind, errorCode, attempts }: DeadLetterToWrite,
): Span | undefined {
  if (traceparent === null) return undefined;
  return tracing?.startSpan("write dead letter", {
    kind: "consumer",
    parent: traceparent,
    attributes: {
      "booking_events.event_id": eventId,
      "booking_events.kind": kind ?? undefined,
      "booking_events.partner": partner ?? undefined,
      "booking_events.attempts": attempts,
      "error.type": errorCode,
    },
  });
}

function throughOutages<Result>(work: () => Promise<Result>, options: ProcessOptions): Promise<Result> {
  return releaseOnStop(() => options.outageGate.run(work), options);
}

async function releaseOnStop<Result>(work: () => Promise<Result>, { signal }: ProcessOptions): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted && error === signal.reason) throw new ReleaseDelivery("The worker is stopping.");
    throw error;
  }
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The queue's ids are event ids. Any other id is of a job that ingest did not queue, and becomes a UUIDv8. */
function toUuid(jobId: string): string {
  if (uuidPattern.test(jobId)) return jobId;
  const hex = createHash("sha256").update(jobId).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
