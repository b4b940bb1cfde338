import type { CreatesAround, LoggedEvent, RevisedEvent } from "./booking-log.ts";
import { comparePlaces, type Place } from "./find-repeats.ts";
import { type BookingState, type FoldEvent, type FoldStep, foldEvent, isSameState, recallContent } from "./fold.ts";

/** What folding late events into a booking comes to. */
export interface Refolding {
  /** The booking after all logged events, with the late ones in their places. */
  state: BookingState;
  /** What each late event does, and the booking after it, by the event's id. */
  late: Map<string, Omit<FoldStep, "event">>;
  /** Logged events that have another outcome, warning or state after them now. */
  revised: RevisedEvent[];
}

export interface LateEvent {
  event: FoldEvent;
  /** For an event that is repeatable; see `isRepeatable`. */
  creates: CreatesAround | undefined;
}

/**
 * Folds late events into a booking at their places, and takes out logged events that repeat them and no longer count.
 *
 * The log has the booking's state after each event. The fold starts from the state before the earliest place where
 * something changes. It ends when it comes to the stored state, since everything after that stays as it was. The outcome
 * of a create also depends on earlier creates with the same content, so the next such create after a late one is
 * another place to look at.
 *
 * This class reads nothing itself: while there is a {@link nextPlace}, the caller reads the log from there, and passes
 * on what it finds.
 */
export class Refold {
  readonly #stored: BookingState;
  readonly #duplicateWindowMs: number;
  readonly #displaced: ReadonlySet<string>;
  /** Where something changes or may change, in order. */
  readonly #places: Place[];
  #lateLeft: readonly LateEvent[];
  /** By content, the newest late create that was folded. The log does not have them yet. */
  readonly #lateCreates = new Map<string, Place>();
  /** Not in the log's states. */
  #createdAt: Date;
  /** The newest event that decides the state after it, although it is recorded as superseded. */
  #decidingSuperseded: RevisedEvent | undefined;
  readonly #refolding: Refolding;

  /** The state before the next event. */
  #state: BookingState | null = null;
  #isFromStart = false;
  /** The sequence of the newest logged event that was seen. */
  #newestSeen = 0;
  /** The last event of the last page. The next page begins with it. */
  #lastOnPage: Place | undefined;

  /**
   * @param booking.stored the booking after all logged events
   * @param booking.late in sequence order
   * @param booking.displaced logged events that no longer count
   */
  constructor(booking: {
    stored: BookingState;
    late: readonly LateEvent[];
    displaced: readonly Place[];
    duplicateWindowMs: number;
  }) {
    const { stored, late, displaced, duplicateWindowMs } = booking;
    this.#stored = stored;
    this.#createdAt = stored.createdAt;
    this.#duplicateWindowMs = duplicateWindowMs;
    this.#displaced = new Set(displaced.map(({ id }) => id));
    this.#lateLeft = late;
    this.#places = [
      ...late.map(({ event }) => event),
      ...displaced,
      ...late.flatMap(({ creates }) => toNextPlace(creates)),
    ].sort(comparePlaces);
    this.#refolding = { state: stored, late: new Map(), revised: [] };
  }

  /** The place from which to read the log; undefined: nothing else changes. */
  nextPlace(): Place | undefined {
    return this.#places[0];
  }

  /**
   * Call this before the first page from a place.
   *
   * @param before the last event before the page; null: the page begins at the start of the log
   * @param first the first event on the page; undefined: the page is empty
   */
  begin(before: LoggedEvent | null, first: LoggedEvent | undefined): void {
    this.#lastOnPage = undefined;
    this.#newestSeen = Math.max(this.#newestSeen, before?.sequence ?? 0);
    // The log has the event that created the booking, unless it was so old that it was removed.
    const isWhole = first?.receivedAt.getTime() === this.#stored.createdAt.getTime();
    this.#isFromStart = before === null && isWhole;
    this.#state = before === null && !isWhole ? this.#stateBeforeLog(first) : this.#stateAfter(before);
  }

  /** @returns whether the fold came to the stored state. Then the rest of the log needs not be read */
  foldPage(events: readonly LoggedEvent[]): boolean {
    const last = events.at(-1);
    this.#newestSeen = Math.max(this.#newestSeen, last?.sequence ?? 0);
    for (const event of events) {
      if (this.#lastOnPage !== undefined && comparePlaces(event, this.#lastOnPage) <= 0) continue;
      this.#foldLateBefore(event);
      this.#passPlaces(event);
      if (this.#displaced.has(event.id)) continue;
      const isAsStored = this.#foldLogged(event);
      if (isAsStored && !this.#isNextPlaceUpTo(last)) {
        this.#refolding.state = { ...this.#stored, createdAt: this.#createdAt };
        return true;
      }
    }
    this.#lastOnPage = last;
    return false;
  }

  /** Call this after the last page of the log, if the fold has not come to the stored state. */
  endLog(): void {
    this.#foldLateBefore(undefined);
    if (this.#state === null) throw new Error("There is a late event, and all events that it displaces are after it.");
    this.#places.length = 0;
    const isEndMissing = this.#newestSeen < this.#stored.lastSequence;
    this.#refolding.state = { ...(isEndMissing ? this.#stored : this.#state), createdAt: this.#createdAt };
  }

  /** How many revised events there are to write. */
  get revisedCount(): number {
    return this.#refolding.revised.length;
  }

  /** Hands over the revised events so far, to be written now. */
  takeRevised(): RevisedEvent[] {
    return this.#refolding.revised.splice(0);
  }

  /**
   * The place of the event that decides the booking's state, if that event was not folded and may be recorded as
   * superseded. The events after it were folded, or no longer count.
   */
  unseenDecider(): Place | undefined {
    const { state, late } = this.#refolding;
    const { eventId: id, sequence } = state;
    const isKnown = id === this.#stored.eventId || late.has(id) || id === this.#decidingSuperseded?.event.id;
    return isKnown ? undefined : { id, sequence };
  }

  /** @param before the last event before it; null: there is none */
  foldDecider(event: LoggedEvent | undefined, before: LoggedEvent | null): void {
    if (event?.id !== this.#refolding.state.eventId || event.outcome !== "superseded") return;
    this.#decidingSuperseded = this.#fold(this.#stateAfter(before), event, event.earlierCreate);
  }

  /** Call this when there is no {@link nextPlace} and no {@link unseenDecider} left. */
  result(): Refolding {
    const { state, late, revised } = this.#refolding;
    const decider = this.#decidingSuperseded;
    if (decider === undefined || decider.event.id !== state.eventId || decider.event.id === this.#stored.eventId)
      return this.#refolding;
    return { state, late, revised: [...revised.filter(({ event }) => event.id !== decider.event.id), decider] };
  }

  /** @param event undefined: the end of the log */
  #foldLateBefore(event: LoggedEvent | undefined): void {
    const isBefore = ({ event: late }: LateEvent) => event === undefined || comparePlaces(late, event) < 0;
    for (let [next] = this.#lateLeft; next !== undefined && isBefore(next); [next] = this.#lateLeft) {
      this.#foldLate(next);
      this.#lateLeft = this.#lateLeft.slice(1);
    }
  }

  #passPlaces(event: LoggedEvent): void {
    while (this.#places[0] !== undefined && comparePlaces(this.#places[0], event) <= 0) this.#places.shift();
  }

  #foldLate({ event, creates }: LateEvent): void {
    const { outcome, warning, after } = this.#fold(this.#state, event, creates?.earlier ?? null);
    this.#refolding.late.set(event.id, { outcome, warning, after });
    if (creates !== undefined) this.#lateCreates.set(event.contentDigest, event);
    this.#goTo(after);
  }

  /** @returns whether the booking's state after the event is the stored one */
  #foldLogged(event: LoggedEvent): boolean {
    const { outcome, warning, after } = this.#fold(this.#state, event, event.earlierCreate);
    const isAsStored = isSameState(after, { ...event.after, createdAt: this.#createdAt });
    // A superseded event stays superseded, unless it decides the booking's state in the end.
    const isSuperseded = event.outcome === "superseded";
    if (isSuperseded && after.eventId === event.id) this.#decidingSuperseded = { event, outcome, warning, after };
    if (!isAsStored || event.warning !== warning || (event.outcome !== outcome && !isSuperseded))
      this.#refolding.revised.push({ event, outcome: isSuperseded ? "superseded" : outcome, warning, after });
    this.#goTo(after);
    return isAsStored;
  }

  #fold(state: BookingState | null, event: FoldEvent, loggedCreate: number | null): FoldStep {
    const lateCreate = this.#lateCreates.get(event.contentDigest);
    const earlier = loggedCreate === null ? [] : [loggedCreate];
    if (lateCreate !== undefined && comparePlaces(lateCreate, event) < 0) earlier.push(lateCreate.sequence);
    const earlierCreate = earlier.length === 0 ? undefined : Math.max(...earlier);
    return foldEvent(state, event, { earlierCreate, duplicateWindowMs: this.#duplicateWindowMs });
  }

  #goTo(state: BookingState): void {
    this.#state = state;
    if (this.#isFromStart) this.#createdAt = state.createdAt;
  }

  #isNextPlaceUpTo(last: LoggedEvent | undefined): boolean {
    const [next] = this.#places;
    return next !== undefined && last !== undefined && comparePlaces(next, last) <= 0;
  }

  #stateAfter(event: LoggedEvent | null): BookingState | null {
    if (event === null) return null;
    const content = recallContent(event.after.content, this.#stored.content);
    return { ...event.after, content, createdAt: this.#createdAt };
  }

  /**
   * What the first event in the log tells of the state before it. If it tells nothing, it makes no difference to the
   * state after it either.
   */
  #stateBeforeLog(first: LoggedEvent | undefined): BookingState | null {
    const after = this.#stateAfter(first ?? null);
    if (first === undefined || after === null) return null;
    const isDecider = after.eventId === first.id;
    if (isDecider) return first.kind === "delete" ? { ...after, state: "active", deletedAt: null } : null;
    const isRepeated = after.state === "active" && after.content?.digest === first.contentDigest;
    if (after.content === null || !isRepeated) return after;
    // When the content was sent before is not known, but that is long ago.
    return { ...after, content: { ...after.content, newestKeylessSequence: null } };
  }
}

function toNextPlace(creates: CreatesAround | undefined): Place[] {
  if (creates === undefined || creates.nextId === null || creates.nextSequence === null) return [];
  return [{ id: creates.nextId, sequence: creates.nextSequence }];
}
