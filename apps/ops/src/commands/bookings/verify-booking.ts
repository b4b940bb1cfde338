import { type BookingState, foldEvent, isSameState, type LoggedEvent } from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import {
  findMisjudgedKeys,
  type MisjudgedKey,
  type Queryable,
  readLog,
  type StoredBooking,
  startOfLog,
} from "@booking-events/store";

/** What is stored of a booking, compared with the fold of its log. */
export interface Verification {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  /** Those that count in the fold. */
  events: number;
  /** Events from before states were stored; the first late event makes the worker store them. */
  eventsWithoutState: number;
  /** Sentences without any content. Empty: all is as it should be. */
  differences: string[];
}

const pageSize = 1_000;
/** If the fold is off once, it may be off for the rest of a long log. */
const maxDifferences = 20;

/** Folds the booking's whole log again, and compares the state after each event and the booking with what is stored. */
export async function verifyBooking(
  client: Queryable,
  booking: StoredBooking,
  { duplicateWindowMs }: { duplicateWindowMs: number },
): Promise<Verification> {
  const { bookingKey, partner, referenceKind, reference } = booking;
  const verification: Verification = {
    ...{ partner, referenceKind, reference },
    ...{ events: 0, eventsWithoutState: 0, differences: [] },
  };
  let state: BookingState | null = null;
  let from: Pick<LoggedEvent, "id" | "sequence"> = startOfLog;
  let isEnd = false;
  while (!isEnd) {
    const [page] = await readLog(client, [{ bookingKey, from, limit: pageSize }]);
    if (page === undefined) break;
    for (const event of page.events) {
      // A page begins with the last event of the one before it.
      if (event.id === from.id) continue;
      const step = foldEvent(state, event, { earlierCreate: event.earlierCreate ?? undefined, duplicateWindowMs });
      compareEvent(verification, event, step, booking);
      state = step.after;
    }
    from = page.events.at(-1) ?? from;
    ({ isEnd } = page);
  }
  compareBooking(verification, booking.state, state);
  const misjudged = await findMisjudgedKeys(client, bookingKey, maxDifferences);
  verification.differences.push(...misjudged.map(describeMisjudged));
  verification.differences.splice(maxDifferences);
  return verification;
}

function compareEvent(
  verification: Verification,
  event: LoggedEvent,
  { outcome, after }: { outcome: string; after: BookingState },
  { state: { eventId: deciderId, createdAt } }: StoredBooking,
): void {
  const { differences } = verification;
  verification.events += 1;
  const isSuperseded = event.outcome === "superseded" && event.id !== deciderId;
  if (event.outcome !== outcome && !isSuperseded)
    differences.push(`Event ${event.id} is recorded as ${event.outcome}, and is ${outcome} in the fold.`);
  if (event.after === null) verification.eventsWithoutState += 1;
  else if (!isSameState({ ...event.after, createdAt }, after))
    differences.push(`The state after event ${event.id} is not what the fold comes to.`);
}

function describeMisjudged({ id, isDuplicate, isReuse }: MisjudgedKey): string {
  if (isDuplicate) return `Event ${id} repeats an earlier one with its idempotency key, and is not recorded so.`;
  if (isReuse) return `Event ${id} uses an earlier event's idempotency key for something else, and is not recorded so.`;
  return `Event ${id} is recorded as if an earlier one had its idempotency key, and none has.`;
}

function compareBooking({ differences }: Verification, stored: BookingState, folded: BookingState | null): void {
  if (folded === null) {
    differences.push("The booking is there, and none of its events counts.");
    return;
  }
  if (!isSameState(stored, folded))
    differences.push(
      `The booking is ${stored.state} by event ${stored.eventId}, and by the fold ${folded.state} by event ${folded.eventId}.`,
    );
  const times = ["createdAt", "updatedAt", "deletedAt"] as const;
  for (const time of times)
    if (stored[time]?.getTime() !== folded[time]?.getTime())
      differences.push(`The booking's ${time} is not that of the fold.`);
  if (stored.lastSequence !== folded.lastSequence)
    differences.push("The newest event that the booking knows is not the newest in its log.");
}
