import { createHash } from "node:crypto";
import type { Outcome } from "@booking-events/bookings";
import { type Delivery, ReleaseDelivery } from "@booking-events/queue";
import { bookingReferenceOf, parseEnvelopeText } from "@booking-events/schema";
import { type Logger, safeMessage } from "@booking-events/service";
import type { DeadLetterToWrite } from "@booking-events/store";
import { type AppliedEvent, InvalidEnvelope, type QueuedEvent } from "./apply-in-batches.ts";
import { describeFault, isConstraintViolation } from "./describe-fault.ts";
import type { OutageGate } from "./wait-out-outage.ts";

export interface ProcessOptions {
  /**
   * Applies the event. Waits out outages.
   *
   * @throws InvalidEnvelope; what keeps the event from being applied; the signal's reason when it aborts
   */
  apply: (event: QueuedEvent) => Promise<AppliedEvent>;
  writeDeadLetter: (letter: DeadLetterToWrite) => Promise<void>;
  /** Whether the event's dead letter was closed: it was discarded after it had been put back into the queue. */
  isDeadLetterClosed: (eventId: string) => Promise<boolean>;
  /** Closes the dead letter of an event that was applied after all. */
  closeDeadLetter: (eventId: string, outcome: Outcome) => Promise<unknown>;
  outageGate: OutageGate;
  /** Told of each event that came to its end, with its outcome or "dead", and of each attempt that failed. */
  count: (what: { kind: string; outcome: Outcome | "dead" | "attempt-failed" }) => void;
  /** Told of each attempt that failed, with what the log calls it. */
  countFault: (code: string) => void;
  logger: Logger;
  /** Aborts when the worker stops: what waits for the database then goes back to the queue. */
  signal: AbortSignal;
}

/** The event could not be applied; BullMQ delivers it again by the retry policy, and stores this message. */
class AttemptFailed extends Error {
  override name = "AttemptFailed";
  readonly [safeMessage] = true;
}

/**
 * Takes one delivery to its end: the event stands applied in PostgreSQL, or as a dead letter.
 *
 * @throws AttemptFailed when it should be delivered again later; ReleaseDelivery when the worker stops first
 */
export async function processDelivery(delivery: Delivery, options: ProcessOptions): Promise<void> {
  const { attempt, isReplay } = delivery;
  try {
    if (isReplay && (await throughOutages(() => options.isDeadLetterClosed(toUuid(delivery.jobId)), options))) {
      options.logger.info({ eventId: delivery.jobId }, "replay dropped: its dead letter is closed");
      return;
    }
    const { eventId, partner, kind, sequence, outcome } = await releaseOnStop(() => options.apply(delivery), options);
    if (isReplay) await throughOutages(() => options.closeDeadLetter(eventId, outcome), options);
    options.count({ kind, outcome });
    options.logger.info({ eventId, partner, kind, sequence, outcome, attempt }, "event applied");
  } catch (error) {
    if (error instanceof ReleaseDelivery) throw error;
    await fail(delivery, error, options);
  }
}

/** @throws AttemptFailed unless the event is given up */
async function fail(delivery: Delivery, error: unknown, options: ProcessOptions): Promise<void> {
  if (error instanceof InvalidEnvelope) {
    const message = `The queued event is not valid: ${error.problem}`;
    return await bury(delivery, { code: "INVALID_ENVELOPE", message }, options);
  }
  const fault = describeFault(error);
  if (fault.isOfContent || delivery.isLastAttempt) return await bury(delivery, fault, options);
  const { eventId, partner, kind } = identify(delivery);
  options.count({ kind: kind ?? "unknown", outcome: "attempt-failed" });
  options.countFault(fault.code);
  options.logger[isConstraintViolation(fault) ? "error" : "warn"](
    { eventId, partner, kind, code: fault.code, attempt: delivery.attempt, err: error },
    "attempt failed",
  );
  throw new AttemptFailed(`${fault.code}: ${fault.message}`);
}

/**
 * Makes a dead letter of an event that BullMQ has given up by itself: its worker died with it too often, or the worker
 * could not say why it failed.
 */
export async function buryGivenUp(delivery: Delivery, reason: string, options: ProcessOptions): Promise<void> {
  const fault = /stalled/.test(reason)
    ? { code: "STALLED", message: "Each worker that took the event died before it was done." }
    : { code: "GIVEN_UP", message: "The queue gave the event up." };
  await bury(delivery, fault, options);
}

/** As much as can be read. */
function identify(
  delivery: Delivery,
): Pick<DeadLetterToWrite, "eventId" | "partner" | "kind" | "reference" | "sequence"> {
  const parsed = parseEnvelopeText(delivery.text);
  if (!parsed.success)
    return { eventId: toUuid(delivery.jobId), partner: null, kind: null, reference: null, sequence: null };
  const { eventId, partner, kind, sequence, payload } = parsed.envelope;
  return { eventId, partner, kind, reference: bookingReferenceOf(payload), sequence };
}

async function bury(
  delivery: Delivery,
  fault: { code: string; message: string },
  options: ProcessOptions,
): Promise<void> {
  const letter: DeadLetterToWrite = {
    ...identify(delivery),
    errorCode: fault.code,
    // The path to a fault may lead through a key that PostgreSQL can't hold.
    error: fault.message.toWellFormed().replaceAll("\0", "\\0"),
    attempts: delivery.attempt,
    envelope: Buffer.from(delivery.text),
  };
  await throughOutages(() => options.writeDeadLetter(letter), options);
  const { eventId, partner, kind, attempts } = letter;
  options.count({ kind: kind ?? "unknown", outcome: "dead" });
  options.logger.error({ eventId, partner, kind, code: fault.code, attempts }, "event became a dead letter");
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

/** The queue's ids are event ids. Another one, which only a stranger can have queued, is made into one (UUIDv8). */
function toUuid(jobId: string): string {
  if (uuidPattern.test(jobId)) return jobId;
  const hex = createHash("sha256").update(jobId).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
