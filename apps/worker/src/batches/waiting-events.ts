import type { Outcome } from "@booking-events/bookings";
import { countJsonValues, type EventEnvelope } from "@booking-events/schema";
import { readEnvelope, type UnreadEvent } from "./read-envelope.ts";

export interface AppliedEvent extends Pick<EventEnvelope, "eventId" | "partner" | "kind" | "sequence" | "test"> {
  outcome: Outcome;
}

/** An event whose outcome somebody waits for. */
export interface WaitingEvent extends UnreadEvent {
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

/** The events that wait for a batch, and the bookings that have to wait because other events of them are being applied. */
export class WaitingEvents {
  #events: WaitingEvent[] = [];
  /** How many events of a booking are being applied, in a batch or apart, by subject. */
  readonly #busy = new Map<string, number>();

  get count(): number {
    return this.#events.length;
  }

  /** @returns a promise that settles when the event has been applied, or has failed */
  add({ text, subject }: UnreadEvent): Promise<AppliedEvent> {
    return new Promise((resolve, reject) => {
      this.#events.push({ text, subject, resolve, reject });
    });
  }

  /**
   * Takes the next batch. Partners take turns, so one with many or large events does not keep the others out. Events
   * that can't be read are rejected. A booking is busy until all of its events in the batch are resolved or rejected.
   *
   * @returns a batch without events if all that wait are of busy bookings
   */
  takeBatch({ maxEvents, maxCharacters, maxJsonValues }: BatchSize): Batch {
    const batch: Batch = { events: [], envelopes: [], characters: 0 };
    const taken = new Set<WaitingEvent>();
    let values = 0;
    for (const event of inTurns(this.#events)) {
      const isFirst = batch.events.length === 0;
      if (batch.events.length === maxEvents) break;
      if (this.#busy.has(event.subject)) continue;
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
    this.#events = this.#events.filter((event) => !taken.has(event));
    return { ...batch, events: batch.events.map((event) => this.#hold(event)) };
  }

  rejectBooking(subject: string, error: unknown): void {
    const ofBooking = (event: WaitingEvent) => event.subject === subject;
    rejectEvents(this.#events.filter(ofBooking), error);
    this.#events = this.#events.filter((event) => !ofBooking(event));
  }

  rejectAll(error: unknown): void {
    rejectEvents(this.#events, error);
    this.#events = [];
  }

  /** The booking is busy until the event that this returns is resolved or rejected. */
  #hold({ text, subject, resolve, reject }: WaitingEvent): WaitingEvent {
    this.#busy.set(subject, (this.#busy.get(subject) ?? 0) + 1);
    return {
      text,
      subject,
      resolve: (applied) => {
        this.#free(subject);
        resolve(applied);
      },
      reject: (error) => {
        this.#free(subject);
        reject(error);
      },
    };
  }

  #free(subject: string): void {
    const others = (this.#busy.get(subject) ?? 0) - 1;
    if (others > 0) this.#busy.set(subject, others);
    else this.#busy.delete(subject);
  }
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
    const { eventId, partner, kind, sequence, test } = envelopes[index] as EventEnvelope;
    const outcome = outcomes.get(eventId);
    if (outcome === undefined) return true;
    event.resolve({ eventId, partner, kind, sequence, test, outcome });
    return false;
  });
}

export function rejectEvents(events: readonly WaitingEvent[], error: unknown): void {
  for (const event of events) event.reject(error);
}

export function groupByPartner(events: readonly WaitingEvent[]): WaitingEvent[][] {
  return [...Map.groupBy(events, ({ subject }) => subject.split(" ", 1)[0]).values()];
}

export function groupByBooking(events: readonly WaitingEvent[]): WaitingEvent[][] {
  return [...Map.groupBy(events, ({ subject }) => subject).values()];
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
