import type { Outcome } from "@booking-events/bookings";
import { queueName } from "@booking-events/queue";
import type { Span, Tracing } from "@booking-events/runtime";
import type { EventEnvelope } from "@booking-events/schema";

type SampledEvent = EventEnvelope & { traceparent: string };

const messaging = {
  "messaging.system": "bullmq",
  "messaging.operation.type": "process",
  "messaging.operation.name": "apply",
  "messaging.destination.name": queueName,
};

/**
 * Traces a transaction that has an event of a sampled trace. It gets one span `apply batch`, in a trace of its own, with
 * links to its events. Each of the events gets a span `apply event` in its own trace, with a link to the batch.
 */
export async function traceBatch(
  tracing: Tracing | undefined,
  envelopes: EventEnvelope[],
  apply: (batch: Span | undefined) => Promise<ReadonlyMap<string, Outcome>>,
): Promise<ReadonlyMap<string, Outcome>> {
  const sampled = tracing === undefined ? [] : envelopes.filter(isSampled);
  if (tracing === undefined || sampled.length === 0) return apply(undefined);
  const batch = tracing.startSpan("apply batch", {
    kind: "consumer",
    links: sampled.map(({ traceparent }) => traceparent),
    attributes: { ...messaging, "messaging.batch.message_count": envelopes.length },
  });
  const events = sampled.map((envelope) => ({ envelope, span: startEventSpan(tracing, envelope, batch) }));
  try {
    const outcomes = await apply(batch);
    for (const { envelope, span } of events) {
      // Without an outcome, the event was left out of the transaction and is applied apart.
      span.setAttributes({ "booking_events.outcome": outcomes.get(envelope.eventId) ?? "left-out" });
    }
    return outcomes;
  } catch (error) {
    for (const { span } of [{ span: batch }, ...events]) span.fail(error);
    throw error;
  } finally {
    for (const { span } of [{ span: batch }, ...events]) span.end();
  }
}

function isSampled(envelope: EventEnvelope): envelope is SampledEvent {
  return envelope.traceparent !== undefined && envelope.traceparent !== null;
}

function startEventSpan(tracing: Tracing, { eventId, partner, kind, traceparent }: SampledEvent, batch: Span): Span {
  return tracing.startSpan("apply event", {
    kind: "consumer",
    parent: traceparent,
    links: [batch.traceparent],
    attributes: {
      ...messaging,
      "messaging.message.id": eventId,
      "booking_events.event_id": eventId,
      "booking_events.kind": kind,
      "booking_events.partner": partner,
    },
  });
}

/** The phases of a transaction as spans, one after the other. Without a batch, nothing is traced. */
export class PhaseSpans {
  readonly #batch: Span | undefined;
  #current: Span | undefined;

  constructor(batch: Span | undefined) {
    this.#batch = batch;
  }

  /** Ends the current phase. */
  enter(name: "begin" | "lock" | "read" | "write" | "commit"): void {
    this.leave();
    this.#current = this.#batch?.startChild(name, {
      kind: "client",
      attributes: { "db.system.name": "postgresql", "db.operation.name": name },
    });
  }

  leave(): void {
    this.#current?.end();
    this.#current = undefined;
  }

  /** Ends the current phase, if there is one, because of the error. */
  fail(error: unknown): void {
    this.#current?.fail(error);
    this.leave();
  }
}
