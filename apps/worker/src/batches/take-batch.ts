import type { Outcome } from "@booking-events/bookings";
import { countJsonValues, type EventEnvelope, type EventKind } from "@booking-events/schema";
import { type QueuedEvent, readEnvelope } from "./read-envelope.ts";

export interface AppliedEvent {
  eventId: string;
  partner: string;
  kind: EventKind;
  sequence: number;
  outcome: Outcome;
}

export interface WaitingEvent extends QueuedEvent {
  resolve: (applied: AppliedEvent) => void;
  reject: (error: unknown) => void;
}

/** Events to apply together, with their envelopes in the same order. */
export interface Batch {
  events: WaitingEvent[];
  envelopes: EventEnvelope[];
  /** Of all texts. */
  characters: number;
}

export interface BatchSize {
  maxEvents: number;
  /** Of JSON. A larger event is applied alone. */
  maxCharacters: number;
  /** Objects, arrays and scalars. However short they are, they cost the worker and PostgreSQL the most. */
  maxJsonValues: number;
}

/**
 * Takes the next batch from the events that wait. Partners take turns, so one with many or large events does not keep
 * the others out. Events that can't be read are rejected.
 *
 * @param isBusy whether events of the booking are being applied already; its other events must wait
 * @returns the batch, and the events that wait on
 */
export function takeBatch(
  waiting: readonly WaitingEvent[],
  isBusy: (subject: string) => boolean,
  { maxEvents, maxCharacters, maxJsonValues }: BatchSize,
): { batch: Batch; left: WaitingEvent[] } {
  const batch: Batch = { events: [], envelopes: [], characters: 0 };
  const taken = new Set<WaitingEvent>();
  let values = 0;
  for (const event of inTurns(waiting)) {
    const isFirst = batch.events.length === 0;
    if (batch.events.length === maxEvents) break;
    if (isBusy(event.subject)) continue;
    if (!isFirst && batch.characters + event.text.length > maxCharacters) break;
    const envelope = readOrReject(event);
    const added = envelope === undefined ? 0 : countJsonValues(envelope.payload);
    if (!isFirst && values + added > maxJsonValues) break;
    taken.add(event);
    if (envelope === undefined) continue;
    batch.events.push(event);
    batch.envelopes.push(envelope);
    batch.characters += event.text.length;
    values += added;
  }
  return { batch, left: waiting.filter((event) => !taken.has(event)) };
}

/**
 * Gives the events their outcomes.
 *
 * @returns the events that have none
 */
export function resolveEvents(
  { events, envelopes }: Pick<Batch, "events" | "envelopes">,
  outcomes: ReadonlyMap<string, Outcome>,
): WaitingEvent[] {
  return events.filter((event, index) => {
    const { eventId, partner, kind, sequence } = envelopes[index] as EventEnvelope;
    const outcome = outcomes.get(eventId);
    if (outcome === undefined) return true;
    event.resolve({ eventId, partner, kind, sequence, outcome });
    return false;
  });
}

export function rejectEvents(events: readonly WaitingEvent[], error: unknown): void {
  for (const event of events) event.reject(error);
}

export function groupByPartner(events: readonly WaitingEvent[]): WaitingEvent[][] {
  return [...Map.groupBy(events, ({ subject }) => subject.split(" ", 1)[0]).values()];
}

function readOrReject(event: WaitingEvent): EventEnvelope | undefined {
  try {
    return readEnvelope(event.text);
  } catch (error) {
    event.reject(error);
    return undefined;
  }
}

/** One event of each partner after the other. Each partner's events keep their order. */
function* inTurns(events: readonly WaitingEvent[]): Generator<WaitingEvent> {
  let partners = groupByPartner(events);
  for (let turn = 0; partners.length > 0; turn += 1) {
    partners = partners.filter((ofPartner) => turn < ofPartner.length);
    for (const ofPartner of partners) yield ofPartner[turn] as WaitingEvent;
  }
}
