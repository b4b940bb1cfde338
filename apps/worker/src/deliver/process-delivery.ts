import {
  type Consumer,
  DelayDelivery,
  type Delivery,
  type GivenUpEvent,
  LostClaim,
  ReleaseDelivery,
} from "@booking-events/queue";
import { inSpan, type Logger, type Span, safeMessage, type Tracing } from "@booking-events/runtime";
import type { DeadLetterToWrite } from "@booking-events/store";
import type { Batches } from "../batches/apply-in-batches.ts";
import { InvalidEnvelope, LaterVersion } from "../batches/read-envelope.ts";
import type { Transactions } from "../batches/transactions.ts";
import type { AppliedEvent } from "../batches/waiting-events.ts";
import { classifyFault, type Fault, isConstraintViolation } from "../outages/classify-fault.ts";
import type { LaterVersions } from "../watch/watch-later-versions.ts";
import type { WorkerMetrics } from "../watch/worker-metrics.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { identifyEvent, toEventId } from "./identify-event.ts";

/** The parts of the worker that a delivery goes through. */
export interface Worker {
  batches: Pick<Batches, "applyInBatch">;
  transactions: Pick<Transactions, "applyInTrial">;
  deadLetters: DeadLetters;
  metrics: Pick<WorkerMetrics, "countProcessed" | "countFault" | "countSweepFault">;
  laterVersions: Pick<LaterVersions, "note">;
  tracing?: Tracing | undefined;
  logger: Logger;
  /** Aborts with a {@link ReleaseDelivery} when the worker stops. */
  signal: AbortSignal;
}

/** The event could not be applied. BullMQ stores this message, and delivers the event again by the retry policy. */
export class AttemptFailed extends Error {
  override name = "AttemptFailed";
  readonly [safeMessage] = true;
}

/**
 * How long an event of a later release waits for its next delivery, at least. Ten thousand such events then cost about
 * a hundred deliveries a second. A worker manages thousands.
 */
const laterVersionDelayMs = 60_000;

/**
 * The life of a delivery, from when it was taken from the queue. When this returns, the event is applied in PostgreSQL,
 * or it is a dead letter, and the queue forgets it.
 *
 * @param queue where the delivery comes from
 * @param runTrial applies the event by itself, as a trial. Default: with others, in a batch
 * @throws AttemptFailed, DelayDelivery: the queue delivers the event again later; ReleaseDelivery: the worker stops, and
 *   the queue has the event again; LostClaim: another process decides about the event
 */
export async function processDelivery(
  delivery: Delivery,
  queue: Pick<Consumer, "readBytes">,
  worker: Worker,
  runTrial?: GivenUpEvent["runTrial"],
): Promise<void> {
  const { batches, transactions, deadLetters, metrics, laterVersions, logger } = worker;
  try {
    if (delivery.isReplay && (await isLetterClosed(delivery, deadLetters))) {
      logger.info({ eventId: delivery.jobId }, "dropped a replay, since its dead letter is closed");
      return;
    }
    if (delivery.damage !== null) throw new InvalidEnvelope(delivery.damage);
    // The envelope is parsed, events that wait at the same time are gathered, and one transaction applies them: it locks,
    // reads, plans and writes. An outage of PostgreSQL is waited out.
    const applied = await (runTrial === undefined
      ? batches.applyInBatch(delivery)
      : transactions.applyInTrial(delivery, runTrial));
    if (delivery.isReplay) await deadLetters.closeLetter(applied.eventId, applied.outcome, applied.test === true);
    metrics.countProcessed({ ...applied, isTest: applied.test, queuedAtMs: delivery.queuedAtMs });
    logApplied(applied, delivery.attempt, logger);
  } catch (error) {
    if (error instanceof ReleaseDelivery || error instanceof LostClaim) throw error;
    if (error instanceof LaterVersion) {
      metrics.countProcessed({ kind: null, partner: null, outcome: "later-version" });
      laterVersions.note(delivery.jobId);
      throw new DelayDelivery(laterVersionDelayMs * (1 + Math.random()));
    }
    const fault = error instanceof InvalidEnvelope ? describeInvalid(error) : classifyFault(error);
    if (fault.isOfContent || delivery.isLastAttempt) return await makeDeadLetter(delivery, fault, queue, worker);
    const { eventId, partner, kind, isTest } = identifyEvent(delivery);
    metrics.countProcessed({ kind, partner, isTest, outcome: "attempt-failed" });
    metrics.countFault(fault.code);
    logger[isConstraintViolation(fault) ? "error" : "warn"](
      { eventId, partner, kind, code: fault.code, attempt: delivery.attempt, err: error },
      "attempt failed",
    );
    throw new AttemptFailed(`${fault.code}: ${fault.message}`);
  }
}

function isLetterClosed(delivery: Delivery, deadLetters: DeadLetters): Promise<boolean> {
  return deadLetters.isLetterClosed(toEventId(delivery.jobId), identifyEvent(delivery).isTest);
}

/** The event was accepted, and its content is lost: only its partner can send it again. */
const expiredMessage =
  'event recorded without its content and not applied, since it is older than the log: see "EventsExpired" in docs/runbook.md';

function logApplied(
  { eventId, partner, kind, sequence, test, outcome }: AppliedEvent,
  attempt: number,
  logger: Logger,
): void {
  const logged = { eventId, partner, kind, sequence, test, outcome, attempt };
  if (outcome === "expired") logger.warn(logged, expiredMessage);
  else logger.info(logged, "event applied");
}

function describeInvalid({ message }: InvalidEnvelope): Fault {
  return { code: "INVALID_ENVELOPE", message: `The queued event is invalid: ${message}`, isOfContent: true };
}

/** Writes a dead letter, unless the event is in the log: then another delivery of it was applied. */
export async function makeDeadLetter(
  delivery: Delivery,
  fault: Pick<Fault, "code" | "message">,
  queue: Pick<Consumer, "readBytes">,
  { deadLetters, metrics, tracing, logger }: Worker,
): Promise<void> {
  const { traceparent, isTest, ...identity } = identifyEvent(delivery);
  const letter: DeadLetterToWrite = {
    ...identity,
    errorCode: fault.code,
    // The message may name a key that PostgreSQL can't hold.
    error: fault.message.toWellFormed().replaceAll("\0", "\\0"),
    attempts: delivery.attempt,
    envelope: await queue.readBytes(delivery),
  };
  const span = startLetterSpan(tracing, traceparent, letter);
  const outcome = await inSpan(span, () => deadLetters.writeLetter(letter, isTest));
  const { eventId, partner, kind, attempts } = letter;
  metrics.countProcessed({ kind, partner, isTest, outcome: outcome ?? "dead" });
  if (outcome === undefined) {
    const logged = { eventId, partner, kind, test: isTest || undefined, code: fault.code, attempts };
    logger.error(logged, "event became a dead letter");
  } else {
    const logged = { eventId, partner, kind, outcome, code: fault.code };
    logger.warn(logged, "a delivery failed, but the event had been applied before");
  }
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
