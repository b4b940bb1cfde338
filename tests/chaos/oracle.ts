import type { EventKind } from "@booking-events/schema";

/**
 * What the bookings must be, from the events in the log.
 *
 * This says what `fold.ts` and `settle-keys.ts` say, and was written without them, from the contract's table: a mistake in one is not in the other. Keep it that way: no import, no shared table. It is slow and
 * plain on purpose, and always folds a booking from its first event.
 */
export interface OracleEvent {
  id: string;
  partner: string;
  reference: string;
  kind: EventKind;
  /** The order of receipt, in microseconds. */
  sequence: number;
  idempotencyKey: string | null;
  /** The canonical payload. */
  content: string;
}

export interface ExpectedBooking {
  state: "active" | "deleted";
  /** Of the event that decided the state. */
  sequence: number;
  /** What the booking holds; of a deleted one, what it held. Null: only deletes have been received. */
  content: string | null;
}

export type ExpectedOutcome = "created" | "updated" | "deleted" | "recreated" | "unchanged" | "duplicate";

export interface Expectation {
  /** By partner and reference: see {@link nameBooking}. */
  bookings: Map<string, ExpectedBooking>;
  /** By event id: what each event does when all are taken in the order of receipt. */
  outcomes: Map<string, ExpectedOutcome>;
  /** Ids of events that an earlier event of the booking with the same key, kind and content has told already. */
  keyRepeats: Set<string>;
  /** Ids of other events that carry the key of an earlier event of the booking. */
  keyReuses: Set<string>;
}

export function expectBookings(events: readonly OracleEvent[], duplicateWindowMs: number): Expectation {
  const expectation: Expectation = {
    ...{ bookings: new Map(), outcomes: new Map() },
    ...{ keyRepeats: new Set(), keyReuses: new Set() },
  };
  const inOrder = events.toSorted((a, b) => a.sequence - b.sequence);
  const keysSeen = new Set<string>();
  const tellingsSeen = new Set<string>();
  const counted = inOrder.filter((event) => {
    if (event.idempotencyKey === null) return true;
    const key = JSON.stringify([nameBooking(event), event.idempotencyKey]);
    const telling = JSON.stringify([key, event.kind, event.content]);
    if (tellingsSeen.has(telling)) {
      expectation.keyRepeats.add(event.id);
      expectation.outcomes.set(event.id, "duplicate");
      return false;
    }
    if (keysSeen.has(key)) expectation.keyReuses.add(event.id);
    keysSeen.add(key);
    tellingsSeen.add(telling);
    return true;
  });
  for (const [name, history] of Map.groupBy(counted, nameBooking)) {
    const booking = fold(history, duplicateWindowMs * 1_000, expectation.outcomes);
    if (booking !== null) expectation.bookings.set(name, booking);
  }
  return expectation;
}

/** A partner's id holds no space. */
export function nameBooking({ partner, reference }: { partner: string; reference: string }): string {
  return `${partner} ${reference}`;
}

function fold(
  history: OracleEvent[],
  windowMicroseconds: number,
  outcomes: Map<string, ExpectedOutcome>,
): ExpectedBooking | null {
  let booking: ExpectedBooking | null = null;
  const creates: OracleEvent[] = [];
  /** The events that sent what the booking holds, since it holds it. */
  let senders: OracleEvent[] = [];

  for (const event of history) {
    const repeatsOneOf = (earlier: OracleEvent[]): boolean =>
      event.idempotencyKey === null &&
      earlier.some(
        ({ idempotencyKey, content, sequence }) =>
          idempotencyKey === null && content === event.content && event.sequence - sequence <= windowMicroseconds,
      );
    const outcome = decide(booking, event, {
      repeatsACreate: repeatsOneOf(creates),
      repeatsTheLastContent: repeatsOneOf(senders),
    });
    outcomes.set(event.id, outcome);

    if (outcome === "created" || outcome === "updated" || outcome === "recreated") {
      booking = { state: "active", sequence: event.sequence, content: event.content };
      senders = [event];
    } else if (outcome === "deleted") {
      booking = { state: "deleted", sequence: event.sequence, content: senders[0]?.content ?? null };
    } else if (outcome === "unchanged" && event.kind !== "delete") {
      senders.push(event);
    }
    if (event.kind === "create") creates.push(event);
  }
  return booking;
}

function decide(
  before: ExpectedBooking | null,
  { kind, content }: OracleEvent,
  { repeatsACreate, repeatsTheLastContent }: { repeatsACreate: boolean; repeatsTheLastContent: boolean },
): ExpectedOutcome {
  if (before === null) return kind === "delete" ? "deleted" : "created";
  if (before.state === "active") {
    if (kind === "delete") return "deleted";
    if (content === before.content) return "unchanged";
    return kind === "create" && repeatsACreate ? "duplicate" : "updated";
  }
  if (kind === "delete") return "unchanged";
  const isRepeat = kind === "create" ? repeatsACreate : repeatsTheLastContent;
  return isRepeat ? "duplicate" : "recreated";
}
