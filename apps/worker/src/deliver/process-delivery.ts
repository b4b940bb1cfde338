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
import { type Logger, safeMessage } from "@booking-events/runtime";
import { bookingReferenceOf, parseEnvelopeText, referenceKindOf } from "@booking-events/schema";
import type { DeadLetterToWrite } from "@booking-events/store";
import { InvalidEnvelope, LaterVersion, type QueuedEvent } from "../apply/read-envelope.ts";
import type { AppliedEvent } from "../apply/take-batch.ts";
import { describeFault, isConstraintViolation } from "./describe-fault.ts";
import type { OutageGate } from "./wait-out-outage.ts";

export interface ProcessOptions {
  /**
   * Applies the event. Waits out outages.
   *
   * @throws InvalidEnvelope, LaterVersion; what keeps the event from being applied; the signal's reason when it aborts
   */
  apply: (event: QueuedEvent) => Promise<AppliedEvent>;
  /** @returns the delivery's text as it is in Redis, byte for byte */
  readBytes: (delivery: Delivery) => Promise<Buffer>;
  /** @returns the outcome of an event that stands in the log, and so gets no dead letter */
  writeDeadLetter: (letter: DeadLetterToWrite) => Promise<Outcome | undefined>;
  /** Whether the event's dead letter was closed: it was discarded after it had been put back into the queue. */
  isDeadLetterClosed: (eventId: string) => Promise<boolean>;
  /** Closes the dead letter of an event that was applied after all. */
  closeDeadLetter: (eventId: string, outcome: Outcome) => Promise<unknown>;
  outageGate: OutageGate;
  /** Told of each event that came to its end, with its outcome or "dead", and of each attempt that failed. */
  count: (what: { kind: string; outcome: Outcome | "dead" | "attempt-failed" | "later-version" }) => void;
  /** Told of each delivery of an event that waits for a worker of a later release. */
  onLaterVersion: (eventId: string) => void;
  /** Told of each attempt that failed, with what the log calls it. */
  countFault: (code: string) => void;
  logger: Logger;
  /** Aborts when the worker stops: what waits for the database then goes back to the queue. */
  signal: AbortSignal;
}

/**
 * How soon, at least, an event comes again that a later release has written. Ten thousand of them cost a hundred or so
 * deliveries a second then, of the thousands that a worker manages.
 */
const laterVersionDelayMs = 60_000;

/** The event could not be applied; BullMQ delivers it again by the retry policy, and stores this message. */
class AttemptFailed extends Error {
  override name = "AttemptFailed";
  readonly [safeMessage] = true;
}

/**
 * Takes one delivery to its end: the event stands applied in PostgreSQL, or as a dead letter.
 *
 * @throws AttemptFailed, DelayDelivery when it should be delivered again later; ReleaseDelivery when the worker stops
 *   first
 */
export async function processDelivery(delivery: Delivery, options: ProcessOptions): Promise<void> {
  const { attempt, isReplay } = delivery;
  try {
    if (isReplay && (await throughOutages(() => options.isDeadLetterClosed(toUuid(delivery.jobId)), options))) {
      options.logger.info({ eventId: delivery.jobId }, "replay dropped: its dead letter is closed");
      return;
    }
    if (delivery.damage !== null) throw new InvalidEnvelope(delivery.damage);
    const { eventId, partner, kind, sequence, outcome } = await releaseOnStop(() => options.apply(delivery), options);
    if (isReplay) await throughOutages(() => options.closeDeadLetter(eventId, outcome), options);
    options.count({ kind, outcome });
    options.logger.info({ eventId, partner, kind, sequence, outcome, attempt }, "event applied");
  } catch (error) {
    // Of a lost claim, another process decides about the event.
    if (error instanceof ReleaseDelivery || error instanceof LostClaim) throw error;
    await fail(delivery, error, options);
  }
}

/** @throws AttemptFailed, DelayDelivery unless the event is given up */
async function fail(delivery: Delivery, error: unknown, options: ProcessOptions): Promise<void> {
  if (error instanceof LaterVersion) {
    options.count({ kind: "unknown", outcome: "later-version" });
    options.onLaterVersion(delivery.jobId);
    throw new DelayDelivery(laterVersionDelayMs * (1 + Math.random()));
  }
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

/** A worker that dies while it tries an event, alone, may have been killed by something else. Not so often. */
const maxDeaths = 3;

/**
 * Decides about an event that BullMQ has given up by itself.
 *
 * That it was active when its worker died, however often, says little: so were all others that the worker held, and to
 * BullMQ a worker has died, too, if Redis stood still. So the event is tried alone, and becomes a dead letter only when
 * workers have died of that.
 *
 * @param options.applyAlone applies the event at once, with no other
 * @throws ReleaseDelivery when the worker stops first; LostClaim when the event is another process's by now
 */
export async function judgeGivenUp(
  { delivery, reason, deaths, runTrial }: GivenUpEvent<Delivery>,
  options: ProcessOptions & { applyAlone: ProcessOptions["apply"] },
): Promise<Verdict> {
  if (!/stalled/.test(reason) && delivery.damage === null) {
    await bury(delivery, { code: "GIVEN_UP", message: "The queue gave the event up." }, options);
    return "take out";
  }
  if (deaths >= maxDeaths) {
    const message = "Each worker that tried the event alone died before it was done.";
    await bury(delivery, { code: "STALLED", message }, options);
    return "take out";
  }
  // A trial ends where an outage begins: whoever waits for PostgreSQL may die of anything.
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

/** As much as can be read. */
function identify(
  delivery: Delivery,
): Pick<DeadLetterToWrite, "eventId" | "partner" | "kind" | "referenceKind" | "reference" | "sequence"> {
  const parsed = parseEnvelopeText(delivery.text);
  if (!parsed.success)
    return {
      ...{ eventId: toUuid(delivery.jobId), partner: null, kind: null },
      ...{ referenceKind: null, reference: null, sequence: null },
    };
  const { eventId, partner, kind, sequence, payload } = parsed.envelope;
  return {
    ...{ eventId, partner, kind, sequence },
    ...{ referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload) },
  };
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
    envelope: await options.readBytes(delivery),
  };
  const outcome = await throughOutages(() => options.writeDeadLetter(letter), options);
  const { eventId, partner, kind, attempts } = letter;
  if (outcome !== undefined) {
    options.count({ kind: kind ?? "unknown", outcome });
    options.logger.warn({ eventId, partner, kind, outcome, code: fault.code }, "failed, but had been applied before");
    return;
  }
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
