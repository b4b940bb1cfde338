import {
  type BookingState,
  type CreatesAround,
  comparePlaces,
  foldEvent,
  isSameState,
  type LoggedEvent,
  type Place,
  type Refolding,
  type RevisedEvent,
} from "@booking-events/bookings";
import { type LogPage, type LogRange, RollBack, startOfLog } from "@booking-events/store";
import type { IncomingEvent } from "./incoming-event.ts";

/** The booking needs to read more of its log than it may while other bookings wait. */
export class TooMuchHistory extends RollBack {
  override name = "TooMuchHistory";
  readonly bookingKey: Buffer;

  constructor(bookingKey: Buffer) {
    super("The booking's history must be read in a transaction of its own.");
    this.bookingKey = bookingKey;
  }
}

/** The first page is small, since most late events are settled by the event after them. */
const pageSizes = [20, 200, 1_000] as const;
/** How many revised events are held before they are written. */
const maxRevisedHeld = 1_000;

/**
 * Folds late events into a booking at their places, and takes out logged events that repeat them and no longer count.
 *
 * The log has the booking's state after each event. The fold starts from the state before the earliest place where
 * something changes. It ends when it comes to the stored state, since everything after that stays as it was. The
 * outcome of a create also depends on earlier creates with the same content, so the next such create after a late one
 * is another place to look at.
 *
 * @param options.stored the booking after all logged events
 * @param options.late in sequence order, each with the creates around it if it is repeatable
 * @param options.displaced logged events that no longer count
 * @param options.maxEvents how many events may be read; undefined: no limit
 * @param options.read reads the log
 * @param options.revise writes revised events when there are too many to hold. The others are in the result
 * @throws TooMuchHistory
 */
export async function refoldBooking(options: {
  bookingKey: Buffer;
  stored: BookingState;
  late: { event: IncomingEvent; creates: CreatesAround | undefined }[];
  displaced: Place[];
  duplicateWindowMs: number;
  maxEvents: number | undefined;
  read: (range: LogRange) => Promise<LogPage>;
  revise: (steps: RevisedEvent[]) => Promise<void>;
}): Promise<Refolding> {
  const { bookingKey, stored, displaced, duplicateWindowMs, maxEvents } = options;
  const displacedIds = new Set(displaced.map(({ id }) => id));
  const places = [
    ...options.late.map(({ event }) => event),
    ...displaced,
    ...options.late.flatMap(({ creates }) => toNextPlace(creates)),
  ].sort(comparePlaces);
  let lateLeft = options.late;
  /** By content, the newest late create that was folded. The log does not have them yet. */
  const lateCreates = new Map<string, Place>();
  const refolding: Refolding = { state: stored, late: new Map(), revised: [] };
  let { createdAt } = stored;
  /** The newest event that decides the state after it, although it is recorded as superseded. */
  let decidingSuperseded: RevisedEvent | undefined;
  let eventsRead = 0;

  async function read(from: Place, pageNumber: number): Promise<LogPage> {
    const limit = pageSizes[Math.min(pageNumber, pageSizes.length - 1)] as number;
    const page = await options.read({ bookingKey, from, limit });
    eventsRead += page.events.length;
    if (maxEvents !== undefined && eventsRead > maxEvents) throw new TooMuchHistory(bookingKey);
    return page;
  }

  /** Reads the page that begins at the place, and the state before it. */
  async function begin(place: Place): Promise<{ page: LogPage; state: BookingState | null }> {
    const page = await read(place, 0);
    if (page.before === null) return { page, state: null };
    if (page.before.after !== null) return { page, state: { ...page.before.after, createdAt } };
    // The event is from before states were stored. Fold the whole log, which stores them.
    return { page: await read(startOfLog, 1), state: null };
  }

  function fold(state: BookingState | null, event: LoggedEvent | IncomingEvent, earlierCreate: number | null) {
    const late = lateCreates.get(event.contentDigest);
    const before = earlierCreate === null ? [] : [earlierCreate];
    if (late !== undefined && comparePlaces(late, event) < 0) before.push(late.sequence);
    return foldEvent(state, event, {
      earlierCreate: before.length === 0 ? undefined : Math.max(...before),
      duplicateWindowMs,
    });
  }

  function foldLate(state: BookingState | null, { event, creates }: (typeof lateLeft)[number]): BookingState {
    const { outcome, after } = fold(state, event, creates?.earlier ?? null);
    refolding.late.set(event.id, { outcome, after });
    if (creates !== undefined) lateCreates.set(event.contentDigest, event);
    return after;
  }

  function foldLogged(state: BookingState | null, event: LoggedEvent): { after: BookingState; isAsStored: boolean } {
    const { outcome, after } = fold(state, event, event.earlierCreate);
    const isAsStored = event.after !== null && isSameState(after, { ...event.after, createdAt });
    // A superseded event stays superseded, unless it decides the booking's state in the end.
    const isSuperseded = event.outcome === "superseded";
    if (isSuperseded && after.eventId === event.id) decidingSuperseded = { event, outcome, after };
    if (!isAsStored || (event.outcome !== outcome && !isSuperseded))
      refolding.revised.push({ event, outcome: isSuperseded ? "superseded" : outcome, after });
    return { after, isAsStored };
  }

  /**
   * Folds the events from the place on.
   *
   * @returns the state at the end of the log; null: the fold came to the stored state before that
   */
  async function foldFrom(place: Place): Promise<{ end: BookingState } | null> {
    let { page, state } = await begin(place);
    const isFromStart = state === null;
    let folded: Place | undefined;
    for (let pageNumber = 1; ; pageNumber += 1) {
      const last = page.events.at(-1);
      for (const event of page.events) {
        if (folded !== undefined && comparePlaces(event, folded) <= 0) continue;
        while (lateLeft[0] !== undefined && comparePlaces(lateLeft[0].event, event) < 0) {
          state = foldLate(state, lateLeft[0]);
          lateLeft = lateLeft.slice(1);
        }
        while (places[0] !== undefined && comparePlaces(places[0], event) <= 0) places.shift();
        if (displacedIds.has(event.id)) continue;
        const step = foldLogged(state, event);
        state = step.after;
        if (isFromStart) ({ createdAt } = state);
        const isNextOnPage = places[0] !== undefined && last !== undefined && comparePlaces(places[0], last) <= 0;
        // The fold may be before the place, since it begins at the start of the log if a state is missing.
        const isPast = comparePlaces(place, event) <= 0;
        if (step.isAsStored && isPast && !isNextOnPage) return null;
      }
      if (page.isEnd || last === undefined) break;
      if (refolding.revised.length >= maxRevisedHeld) await options.revise(refolding.revised.splice(0));
      folded = last;
      page = await read(last, pageNumber);
    }
    for (const late of lateLeft) state = foldLate(state, late);
    if (state === null) throw new Error("There is a late event, and all events that it displaces are after it.");
    if (isFromStart) ({ createdAt } = state);
    places.length = 0;
    return { end: state };
  }

  /** Finds the event that decides the booking's state, if it is recorded as superseded. */
  async function findDecider(state: BookingState): Promise<RevisedEvent | undefined> {
    if (state.eventId === stored.eventId || refolding.late.has(state.eventId)) return undefined;
    if (state.eventId === decidingSuperseded?.event.id) return decidingSuperseded;
    // The events after it were folded, or no longer count.
    const { before, events } = await read({ id: state.eventId, sequence: state.sequence }, 0);
    const [event] = events;
    if (event?.id !== state.eventId || event.outcome !== "superseded") return undefined;
    const stateBefore = before?.after == null ? null : { ...before.after, createdAt };
    const { outcome, after } = fold(stateBefore, event, event.earlierCreate);
    return { event, outcome, after };
  }

  for (let place = places[0]; place !== undefined; place = places[0]) {
    const folded = await foldFrom(place);
    refolding.state = folded === null ? { ...stored, createdAt } : folded.end;
  }
  const decider = await findDecider(refolding.state);
  if (decider !== undefined) {
    const others = refolding.revised.filter(({ event }) => event.id !== decider.event.id);
    refolding.revised = [...others, decider];
  }
  return refolding;
}

function toNextPlace(creates: CreatesAround | undefined): Place[] {
  if (creates === undefined || creates.nextId === null || creates.nextSequence === null) return [];
  return [{ id: creates.nextId, sequence: creates.nextSequence }];
}
