import type { IncomingMessage } from "node:http";
import type { ObservedRequest } from "@booking-events/http";
import { type AcceptedEvent, type Producer, queueName } from "@booking-events/queue";
import { inSpan, type Span, type Tracing } from "@booking-events/runtime";
import type { EventKind } from "@booking-events/schema";

/**
 * Begins the span of a request. Call it only when the secret has turned out to be valid: strangers must not be able to
 * fill the collector. The path contains the secret, so the span has the route.
 */
export function startRequestSpan(
  tracing: Tracing | undefined,
  req: IncomingMessage,
  kind: EventKind,
): Span | undefined {
  return tracing?.startTrace(`POST ${routeOf(kind)}`, {
    kind: "server",
    traceparent: req.headers["traceparent"],
    attributes: { "http.request.method": "POST", "http.route": routeOf(kind) },
  });
}

function routeOf(kind: EventKind): string {
  return `/booking-event/${kind}/{secret}`;
}

export function endRequestSpan(span: Span, { requestId, kind, partner, eventId, status, outcome }: ObservedRequest) {
  span.setAttributes({
    "http.response.status_code": status,
    "booking_events.request_id": requestId,
    "booking_events.event_id": eventId,
    "booking_events.kind": kind,
    "booking_events.partner": partner,
    "booking_events.outcome": outcome,
  });
  if (status !== undefined && status >= 500) span.fail(String(status));
  span.end();
}

/** Queues the event. If its request is traced, the event carries the trace to the worker. */
export function enqueueTraced(
  enqueue: Producer["enqueue"],
  event: AcceptedEvent,
  request: Span | undefined,
): Promise<number> {
  if (request === undefined) return enqueue(event);
  const span = request.startChild(`send ${queueName}`, {
    kind: "producer",
    attributes: {
      "messaging.system": "bullmq",
      "messaging.operation.type": "send",
      "messaging.operation.name": "add",
      "messaging.destination.name": queueName,
      "messaging.message.id": event.eventId,
    },
  });
  return inSpan(span, () => enqueue({ ...event, traceparent: span.traceparent }));
}
