import type { EventKind } from "@booking-events/schema";

/**
 * What the bookings must be, from the events in the log.
 *
 * It says the same as `fold.ts` and `find-repeats.ts`, but was written without them, from the contract's table: a
 * mistake in one is not in the other. Keep it that way: no import, no shared table. It is slow and simple on purpose,
 * and always folds a booking from its first event.
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

interface Expected {
  bookings: Map<string, ExpectedBooking>;
  outcomes: Map<string, ExpectedOutcome>;
  keyRepeats: Set<string>;
  keyReuses: Set<string>;
  warnings: Map<string, "booking-unknown" | "replaced">;
}

export function expectBookings(events: readonly OracleEvent[], duplicateWindowMs: number): Expected {
  /** By partner and reference: see {@link nameBooking}. */
  const bookings = new Map<string, ExpectedBooking>();
  /** By event id: what each event does when all are taken in the order of receipt. */
  const outcomes = new Map<string, ExpectedOutcome>();
  /** Ids of events that repeat an earlier event of the booking, with the same key, kind and content. */
  const keyRepeats = new Set<string>();
  /** Ids of other events that carry the key of an earlier event of the booking. */
  const keyReuses = new Set<string>();
  /** By event id: what the sender should know. */
  const warnings: Expected["warnings"] = new Map();

  const keysSeen = new Set<string>();
  const contentsSeen = new Set<string>();
  const counted = events
    .toSorted((a, b) => a.sequence - b.sequence)
    .filter((event) => {
      if (event.idempotencyKey === null) return true;
      const key = JSON.stringify([nameBooking(event), event.idempotencyKey]);
      const content = JSON.stringify([key, event.kind, event.content]);
      const isRepeat = contentsSeen.has(content);
      if (isRepeat) {
        keyRepeats.add(event.id);
        outcomes.set(event.id, "duplicate");
      } else if (keysSeen.has(key)) {
        keyReuses.add(event.id);
      }
      keysSeen.add(key);
      contentsSeen.add(content);
      return !isRepeat;
    });
  for (const [name, history] of Map.groupBy(counted, nameBooking)) {
    const booking = fold(history, duplicateWindowMs * 1_000, { outcomes, warnings });
    if (booking !== null) bookings.set(name, booking);
  }
  return { bookings, outcomes, keyRepeats, keyReuses, warnings };
}

/** A partner's id holds no space. */
export function nameBooking({ partner, reference }: { partner: string; reference: string }): string {
  return `${partner} ${reference}`;
}

function fold(
  history: OracleEvent[],
  windowMicroseconds: number,
  { outcomes, warnings }: Pick<Expected, "outcomes" | "warnings">,
): ExpectedBooking | null {
  let booking: ExpectedBooking | null = null;
  const creates: OracleEvent[] = [];
  /** The events that sent what the booking holds, since it holds it. */
  let senders: OracleEvent[] = [];

  for (const event of history) {
    // A create repeats an earlier create; an update repeats what the booking holds or held.
    const earlier = event.kind === "create" ? creates : senders;
    const isRepeat =
      event.idempotencyKey === null &&
      earlier.some(
        ({ idempotencyKey, content, sequence }) =>
          idempotencyKey === null && content === event.content && event.sequence - sequence <= windowMicroseconds,
      );
    const outcome = decide(booking, event, isRepeat);
    outcomes.set(event.id, outcome);
    if (event.kind === "delete" && senders.length === 0) warnings.set(event.id, "booking-unknown");
    if (event.kind === "create" && outcome === "updated") warnings.set(event.id, "replaced");

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

function decide(before: ExpectedBooking | null, { kind, content }: OracleEvent, isRepeat: boolean): ExpectedOutcome {
  if (before === null) return kind === "delete" ? "deleted" : "created";
  if (before.state === "active") {
    if (kind === "delete") return "deleted";
    if (content === before.content) return "unchanged";
    return kind === "create" && isRepeat ? "duplicate" : "updated";
  }
  if (kind === "delete") return "unchanged";
  return isRepeat ? "duplicate" : "recreated";
}
