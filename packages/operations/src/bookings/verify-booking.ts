import {
  type BookingState,
  type FoldStep,
  foldEvent,
  isSameState,
  type LoggedEvent,
  type Refolding,
  type RevisedEvent,
  recallContent,
} from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import {
  findMisjudgedKeys,
  findWrongPayloads,
  type LogPage,
  type MisjudgedKey,
  type Queryable,
  readLog,
  type StoredBooking,
  startOfLog,
} from "@booking-events/store";

/** A stored booking, compared with the fold of its log. */
export interface Verification {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  /** How many events count in the fold. */
  events: number;
  /** The booking is older than its log, whose first events were removed. What depends on them is not compared. */
  isOlderThanLog: boolean;
  /** Sentences that hold nothing of the content. Empty: there is no difference. */
  differences: string[];
}

export interface Verified {
  verification: Verification;
  /** What the log comes to. A text: why the booking can't be repaired from it, as a sentence. */
  refolding: Refolding | string;
  /** The booking holds something else than its state says. */
  hasWrongPayload: boolean;
}

/** Most bookings have fewer events. They are read together, since PostgreSQL plans a query for longer than it runs. */
const eventsReadTogether = 50;
const pageSize = 1_000;
/** After one difference, the rest of a long log may differ too. */
const maxDifferences = 20;

/** Events that a repair would revise are held. */
const maxRevised = 100_000;

/** The content of an event that was removed has another text in its place. */
const isDigest = /^([0-9a-f]{2})+$/;

/** Ingest's clock gives an event its id, by which it is removed, and Redis' clock gives it its place. */
const clockSkewMs = 5 * 60 * 1_000;

interface VerifyOptions {
  duplicateWindowMs: number;
  horizon: Date | null;
}

/** Folds the bookings' logs again, and compares the outcomes, the states and the bookings with what is stored. */
export async function verifyTogether(
  client: Queryable,
  bookings: StoredBooking[],
  options: VerifyOptions,
): Promise<Verified[]> {
  const bookingKeys = bookings.map(({ bookingKey }) => bookingKey);
  const ranges = bookingKeys.map((bookingKey) => ({ bookingKey, from: startOfLog, limit: eventsReadTogether }));
  const firstPages = await readLog(client, ranges);
  const misjudged = await findMisjudgedKeys(client, bookingKeys, maxDifferences);
  const wrong = await findWrongPayloads(client, bookingKeys);
  const verified: Verified[] = [];
  for (const [index, booking] of bookings.entries()) {
    const pages = readPages(client, booking.bookingKey, firstPages[index]);
    const hasWrongPayload = wrong.some((key) => key.equals(booking.bookingKey));
    verified.push(await verifyBooking(booking, pages, { misjudged: misjudged[index] ?? [], hasWrongPayload }, options));
  }
  return verified;
}

/** @returns the booking's log. Each page after the first begins with the last event of the page before */
async function* readPages(client: Queryable, bookingKey: Buffer, first: LogPage | undefined): AsyncGenerator<LogPage> {
  let page = first;
  while (page !== undefined) {
    yield page;
    const from = page.events.at(-1);
    if (page.isEnd || from === undefined) return;
    [page] = await readLog(client, [{ bookingKey, from, limit: pageSize }]);
  }
}

async function verifyBooking(
  booking: StoredBooking,
  pages: AsyncIterable<LogPage>,
  { misjudged, hasWrongPayload }: { misjudged: MisjudgedKey[]; hasWrongPayload: boolean },
  { duplicateWindowMs, horizon }: VerifyOptions,
): Promise<Verified> {
  const { partner, referenceKind, reference } = booking;
  const logBeginsAt = horizon === null ? null : new Date(horizon.getTime() + clockSkewMs);
  const isOlderThanLog = logBeginsAt !== null && booking.state.createdAt < logBeginsAt;
  const verification: Verification = {
    partner,
    referenceKind,
    reference,
    isOlderThanLog,
    events: 0,
    differences: hasWrongPayload ? ["The booking's content is not what its event sent."] : [],
  };
  // Until then, an event may repeat one that was removed.
  const provableFrom = isOlderThanLog ? (logBeginsAt.getTime() + duplicateWindowMs) * 1_000 : 0;
  const differing = new DifferingEvents();
  let state: BookingState | null = null;
  let lastId: string | undefined;
  for await (const { events } of pages) {
    for (const logged of events) {
      if (logged.id === lastId) continue;
      lastId = logged.id;
      const event = recall(logged, booking.state, logBeginsAt);
      if (event.sequence < provableFrom || (isOlderThanLog && state === null)) {
        verification.events += 1;
        state = { ...event.after, createdAt: booking.state.createdAt };
        continue;
      }
      const step = foldEvent(state, event, { earlierCreate: event.earlierCreate ?? undefined, duplicateWindowMs });
      compareEvent(verification, event, step, booking);
      differing.note(event, step, booking.state);
      state = step.after;
    }
  }
  if (isOlderThanLog && state === null)
    return { verification, refolding: "Its log has been removed.", hasWrongPayload };
  compareBooking(verification, booking.state, state);
  // The first use of a key may have been removed.
  if (!isOlderThanLog) verification.differences.push(...misjudged.map(describeMisjudged));
  verification.differences.splice(maxDifferences);
  return { verification, refolding: toRefolding(state, differing, isOlderThanLog ? [] : misjudged), hasWrongPayload };
}

/** Events whose record differs from the fold, for a repair. */
class DifferingEvents {
  readonly #revised: RevisedEvent[] = [];
  #decidingSuperseded: RevisedEvent | undefined;
  isTooMany = false;

  note(event: LoggedEvent, { outcome, warning, after }: FoldStep, { createdAt }: BookingState): void {
    const isSuperseded = event.outcome === "superseded";
    if (isSuperseded && after.eventId === event.id) this.#decidingSuperseded = { event, outcome, warning, after };
    const isSameOutcome = event.warning === warning && (event.outcome === outcome || isSuperseded);
    if (isSameState({ ...event.after, createdAt }, after) && isSameOutcome) return;
    this.isTooMany ||= this.#revised.length === maxRevised;
    if (!this.isTooMany) this.#revised.push({ event, outcome: isSuperseded ? "superseded" : outcome, warning, after });
  }

  /** A superseded event stays superseded, unless it decides the booking's state. */
  revisedFor({ eventId }: BookingState): RevisedEvent[] {
    const decider = this.#decidingSuperseded;
    if (decider === undefined || decider.event.id !== eventId) return this.#revised;
    return [...this.#revised.filter(({ event }) => event.id !== eventId), decider];
  }
}

function toRefolding(
  folded: BookingState | null,
  differing: DifferingEvents,
  misjudged: MisjudgedKey[],
): Refolding | string {
  if (folded === null) return "Its log has no event that counts. Restore a backup.";
  if (misjudged.length > 0) return "Idempotency keys are recorded wrongly, and the fold depends on them.";
  if (differing.isTooMany) return `More than ${maxRevised} of its events would be revised.`;
  if (folded.content !== null && !isDigest.test(folded.content.digest))
    return "The event with its content has been removed from the log.";
  return { state: folded, late: new Map(), revised: differing.revisedFor(folded) };
}

/** What the log cannot tell any more about events that were removed from it, but the booking still can. */
function recall(event: LoggedEvent, stored: BookingState, logBeginsAt: Date | null): LoggedEvent {
  const { after } = event;
  const isDeciderRemoved =
    logBeginsAt !== null && after.eventId === stored.eventId && stored.sequence < logBeginsAt.getTime() * 1_000;
  const { sequence, updatedAt, deletedAt } = isDeciderRemoved ? stored : after;
  const content = recallContent(after.content, stored.content);
  return { ...event, after: { ...after, content, sequence, updatedAt, deletedAt } };
}

function compareEvent(
  verification: Verification,
  event: LoggedEvent,
  { outcome, warning, after }: FoldStep,
  { state: { eventId: deciderId, createdAt } }: StoredBooking,
): void {
  const { differences } = verification;
  verification.events += 1;
  const isSuperseded = event.outcome === "superseded" && event.id !== deciderId;
  if (event.outcome !== outcome && !isSuperseded)
    differences.push(`Event ${event.id} is recorded as ${event.outcome}, but the fold says ${outcome}.`);
  if (event.warning !== warning)
    differences.push(`Event ${event.id} has the warning ${event.warning}, but the fold says ${warning}.`);
  if (!isSameState({ ...event.after, createdAt }, after))
    differences.push(`The state after event ${event.id} differs from the fold.`);
}

function describeMisjudged({ id, isDuplicate, isReuse }: MisjudgedKey): string {
  if (isDuplicate)
    return `Event ${id} repeats an earlier event with its idempotency key, but is not recorded as a duplicate.`;
  if (isReuse) return `Event ${id} reuses the idempotency key of an earlier event, but has no warning.`;
  return `Event ${id} is recorded as a duplicate or a reuse of a key, but no earlier event has its key.`;
}

function compareBooking({ differences }: Verification, stored: BookingState, folded: BookingState | null): void {
  if (folded === null) {
    differences.push("The booking exists, but none of its events counts.");
    return;
  }
  if (!isSameState(stored, folded))
    differences.push(
      `The booking is ${stored.state} by event ${stored.eventId}, but the fold says ` +
        `${folded.state} by event ${folded.eventId}.`,
    );
  const times = ["createdAt", "updatedAt", "deletedAt"] as const;
  for (const time of times)
    if (stored[time]?.getTime() !== folded[time]?.getTime())
      differences.push(`The booking's ${time} differs from the fold.`);
  if (stored.lastSequence !== folded.lastSequence)
    differences.push("The newest event of the booking is not the newest in its log.");
}
