import type { EventKind } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import type { CreatesAround, LoggedEvent } from "./booking-log.ts";
import { comparePlaces, type Place } from "./find-repeats.ts";
import { type BookingState, type FoldEvent, foldEvents } from "./fold.ts";
import { isRepeatable, planBooking } from "./plan-booking.ts";
import { Refold, type Refolding } from "./refold.ts";

const duplicateWindowMs = 2;
const sendings = ["create A", "update A", "update B", "delete"];

/** From "create A". Events are numbered in the order of receipt, a millisecond apart. */
function event(text: string, number: number): FoldEvent {
  const [kind, content = "-"] = text.split(" ");
  return {
    ...{ id: `e${number}`, kind: kind as EventKind, sequence: number * 1_000, contentDigest: content },
    ...{ hasIdempotencyKey: false, receivedAt: new Date(number) },
  };
}

/** A booking and its log in memory. */
class Booking {
  #state: BookingState | null = null;
  #log: LoggedEvent[] = [];
  pagesRead = 0;

  get state(): BookingState | null {
    return this.#state;
  }

  /** What is recorded, such as "e1 created" with the state after the event. */
  get recorded() {
    return this.#log.map(({ id, outcome, warning, after }) => ({
      ...{ id, outcome, warning, state: after.state, decidedBy: after.eventId },
    }));
  }

  /** Removes old events from the log, as after years. */
  forget(isOld: (event: FoldEvent) => boolean): void {
    const old = new Set(this.#log.filter(isOld).map(({ id }) => id));
    this.#log = this.#log
      .filter(({ id }) => !old.has(id))
      .map((logged, _, log) => ({ ...logged, earlierCreate: findEarlierCreate(log, logged) }))
      .map((logged) => {
        const { content } = logged.after;
        if (content === null || !old.has(content.eventId)) return logged;
        return { ...logged, after: { ...logged.after, content: { ...content, digest: `of ${content.eventId}` } } };
      });
  }

  apply(event: FoldEvent): void {
    const isLate = this.#state !== null && event.sequence < this.#state.lastSequence;
    const creates = new Map(isRepeatable(event) ? [[event.id, this.#findCreatesAround(event)]] : []);
    const refolding = isLate ? this.#refold(event, creates.get(event.id)) : undefined;
    const plan = planBooking(
      { stored: this.#state, feedEventId: null, events: [event] },
      { refolding, creates, duplicateWindowMs },
    );
    this.#state = plan.state;
    const revised = new Map(plan.revised.map(({ event, ...rest }) => [event.id, rest]));
    const [recorded] = plan.recorded.values();
    if (recorded === undefined) throw new Error("A new event is recorded.");
    this.#log = [...this.#log, { ...event, earlierCreate: null, ...recorded }]
      .map((logged) => ({ ...logged, ...revised.get(logged.id) }))
      .sort(comparePlaces)
      .map((logged, _, log) => ({ ...logged, earlierCreate: findEarlierCreate(log, logged) }));
  }

  #refold(event: FoldEvent, creates: CreatesAround | undefined): Refolding {
    const stored = this.#state as BookingState;
    const refold = new Refold({ stored, late: [{ event, creates }], displaced: [], duplicateWindowMs });
    for (let place = refold.nextPlace(); place !== undefined; place = refold.nextPlace()) {
      let from = place;
      const first = this.#read(from);
      refold.begin(this.#before(from), first[0]);
      for (let page = first; !refold.foldPage(page); page = this.#read(from)) {
        const last = page.at(-1);
        if (last === undefined || last.id === this.#log.at(-1)?.id) {
          refold.endLog();
          break;
        }
        from = last;
      }
    }
    const decider = refold.unseenDecider();
    if (decider !== undefined) refold.foldDecider(this.#read(decider)[0], this.#before(decider));
    return refold.result();
  }

  #read(from: Place): LoggedEvent[] {
    this.pagesRead += 1;
    return this.#log.filter((logged) => comparePlaces(logged, from) >= 0).slice(0, 2);
  }

  #before(place: Place): LoggedEvent | null {
    return this.#log.findLast((logged) => comparePlaces(logged, place) < 0) ?? null;
  }

  #findCreatesAround(event: FoldEvent): CreatesAround {
    const isSame = (logged: LoggedEvent) => isRepeatable(logged) && logged.contentDigest === event.contentDigest;
    const next = this.#log.find((logged) => isSame(logged) && logged.sequence > event.sequence);
    return {
      earlier: findEarlierCreate(this.#log, event),
      ...{ nextId: next?.id ?? null, nextSequence: next?.sequence ?? null },
    };
  }
}

function findEarlierCreate(log: LoggedEvent[], event: FoldEvent): number | null {
  if (!isRepeatable(event)) return null;
  const earlier = log.filter(
    (logged) =>
      isRepeatable(logged) && logged.contentDigest === event.contentDigest && logged.sequence < event.sequence,
  );
  return earlier.at(-1)?.sequence ?? null;
}

function allHistories(length: number): FoldEvent[][] {
  if (length === 0) return [[]];
  return allHistories(length - 1).flatMap((history) => sendings.map((text) => [...history, event(text, length)]));
}

/** Any of the events that sent the content may be its source. */
function withoutSource(state: BookingState | null) {
  return { ...state, content: state?.content && { ...state.content, eventId: "any" } };
}

/** The events that are late in the given pattern, a bit for each, arrive after the others: the newest of them first. */
function arrivalOrder(history: FoldEvent[], pattern: number): FoldEvent[] {
  const isLate = (_: FoldEvent, index: number) => (pattern & (1 << index)) !== 0;
  return [...history.filter((one, index) => !isLate(one, index)), ...history.filter(isLate).toReversed()];
}

describe("late events", () => {
  test("leave a booking and its log as if they had been on time", { timeout: 60_000 }, () => {
    const eventCount = 5;
    for (const history of allHistories(eventCount)) {
      const steps = foldEvents(null, history, { earlierCreates: new Map(), duplicateWindowMs });
      const decider = steps.at(-1)?.after.eventId;
      for (let pattern = 1; pattern < 2 ** (eventCount - 1); pattern += 1) {
        const booking = new Booking();
        for (const one of arrivalOrder(history, pattern)) booking.apply(one);
        const expected = steps.map(({ event: { id }, outcome, warning, after }, index) => {
          const recorded = booking.recorded[index]?.outcome;
          const isSuperseded = recorded === "superseded" && id !== decider;
          return {
            ...{ id, outcome: isSuperseded ? recorded : outcome, warning },
            ...{ state: after.state, decidedBy: after.eventId },
          };
        });
        const seen = { state: withoutSource(booking.state), recorded: booking.recorded };
        const wanted = { state: withoutSource(steps.at(-1)?.after ?? null), recorded: expected };
        // There are thousands of cases, and an assertion takes longer than a case does.
        if (JSON.stringify(seen) !== JSON.stringify(wanted))
          expect({ history, pattern, ...seen }).toEqual({ history, pattern, ...wanted });
      }
    }
  });

  test("leave a booking as if they had been on time, though its first events are gone", { timeout: 60_000 }, () => {
    const isOld = ({ sequence }: FoldEvent) => sequence < 100_000;
    for (const sent of allHistories(5)) {
      for (let oldCount = 1; oldCount <= 3; oldCount += 1) {
        // Old events are so old that nothing can repeat them.
        const history = sent.map((one, index) => {
          const number = index < oldCount ? index + 1 : 100 + index;
          return { ...one, id: `e${number}`, sequence: number * 1_000, receivedAt: new Date(number) };
        });
        const wanted =
          foldEvents(null, history, { earlierCreates: new Map(), duplicateWindowMs }).at(-1)?.after ?? null;
        for (let pattern = 1; pattern < 2 ** (4 - oldCount); pattern += 1) {
          const booking = new Booking();
          const recent = arrivalOrder(history.slice(oldCount), pattern);
          for (const one of history.slice(0, oldCount)) booking.apply(one);
          for (const one of recent) {
            booking.forget(isOld);
            booking.apply(one);
          }
          const seen = withoutSource(booking.state);
          if (JSON.stringify(seen) !== JSON.stringify(withoutSource(wanted)))
            expect({ history, pattern, seen }).toEqual({ history, pattern, seen: withoutSource(wanted) });
        }
      }
    }
  });

  test("read no more of the log than they change", () => {
    const booking = new Booking();
    for (let number = 2; number <= 100; number += 2) booking.apply(event(`update ${number}`, number));
    booking.apply(event("update late", 41));
    expect(booking.pagesRead).toBe(1);
  });
});
