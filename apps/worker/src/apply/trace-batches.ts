import type { Outcome } from "@booking-events/bookings";
import { queueName } from "@booking-events/queue";
import type { Span, Tracing } from "@booking-events/runtime";
import type { EventEnvelope } from "@booking-events/schema";
import type { ApplyBatch, ApplyMode } from "../batches/apply-aside.ts";

type SampledEvent = EventEnvelope & { traceparent: string };

const messaging = {
  "messaging.system": "bullmq",
  "messaging.operation.type": "process",
  "messaging.operation.name": "apply",
  "messaging.destination.name": queueName,
};

/**
 * Traces each transaction that has an event of a sampled trace. It gets one span `apply batch`, in a trace of its own,
 * with links to its events. Each of the events gets a span `apply event` in its own trace, with a link to the batch.
 *
 * @param apply its last argument is the span of the batch
 */
export function traceBatches(
  tracing: Tracing | undefined,
  apply: (envelopes: EventEnvelope[], mode: ApplyMode, batch?: Span) => Promise<ReadonlyMap<string, Outcome>>,
): ApplyBatch {
  if (tracing === undefined) return (envelopes, mode) => apply(envelopes, mode);

  return async (envelopes, mode) => {
    const sampled = envelopes.filter(isSampled);
    if (sampled.length === 0) return apply(envelopes, mode);
    const batch = tracing.startSpan("apply batch", {
      kind: "consumer",
      links: sampled.map(({ traceparent }) => traceparent),
      attributes: { ...messaging, "messaging.batch.message_count": envelopes.length },
    });
    const events = sampled.map((envelope) => ({ envelope, span: startEventSpan(tracing, envelope, batch) }));
    try {
      const outcomes = await apply(envelopes, mode, batch);
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
  };
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
export interface Phases {
  /** Ends the current phase. */
  enter(name: "begin" | "lock" | "read" | "write" | "commit"): void;
  leave(): void;
  /** Ends the current phase, if there is one, because of the error. */
  fail(error: unknown): void;
}

export function tracePhases(batch: Span | undefined): Phases {
  let current: Span | undefined;

  function leave(): void {
    current?.end();
    current = undefined;
  }

  return {
    enter(name) {
      leave();
      current = batch?.startChild(name, {
        kind: "client",
        attributes: { "db.system.name": "postgresql", "db.operation.name": name },
      });
    },
    leave,
    fail(error) {
      current?.fail(error);
      leave();
    },
  };
}
