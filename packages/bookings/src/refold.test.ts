import type { EventKind } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import type { CreatesAround, LoggedEvent, RevisedEvent } from "./booking-log.ts";
import { comparePlaces, type Place } from "./find-repeats.ts";
import { type BookingState, type FoldEvent, foldEvents } from "./fold.ts";
import { findLateEvents, isRepeatable, planBooking } from "./plan-booking.ts";
import { Refold, type Refolding } from "./refold.ts";

const duplicateWindowMs = 2;
/** The mutation tests try fewer, and each change against all of them. */
const eventCount = Number(process.env["REFOLDED_EVENTS"] ?? 5);
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
  mostRevisedHeld = 0;

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

  /** @param displaced logged events that repeat a late one, and no longer count */
  apply(events: FoldEvent[], displaced: Place[] = []): void {
    const late = findLateEvents(this.#state, events);
    const creates = new Map(events.filter(isRepeatable).map((one) => [one.id, this.#findCreatesAround(one)]));
    const written: RevisedEvent[] = [];
    const refolding = late.length > 0 ? this.#refold(late, { creates, displaced, written }) : undefined;
    const plan = planBooking(
      { stored: this.#state, feedEventId: null, events },
      { refolding, creates, duplicateWindowMs },
    );
    this.#state = plan.state;
    const revised = new Map([...written, ...plan.revised].map(({ event, ...rest }) => [event.id, rest]));
    for (const [id, now] of revised)
      requireChange(
        this.#log.find((one) => one.id === id),
        now,
      );
    if (new Set(plan.revised.map(({ event }) => event.id)).size < plan.revised.length)
      throw new Error("An event is revised once.");
    const recorded = events.map((one): LoggedEvent => {
      const step = plan.recorded.get(one.id);
      if (step === undefined) throw new Error("A new event is recorded.");
      return { ...one, earlierCreate: null, ...step };
    });
    this.#log = [...this.#log.filter(({ id }) => !displaced.some((one) => one.id === id)), ...recorded]
      .map((logged) => ({ ...logged, ...revised.get(logged.id) }))
      .sort(comparePlaces)
      .map((logged, _, log) => ({ ...logged, earlierCreate: findEarlierCreate(log, logged) }));
  }

  #refold(
    late: readonly FoldEvent[],
    {
      creates,
      displaced,
      written,
    }: { creates: Map<string, CreatesAround>; displaced: Place[]; written: RevisedEvent[] },
  ): Refolding {
    const refold = new Refold({
      stored: this.#state as BookingState,
      late: late.map((one) => ({ event: one, creates: creates.get(one.id) })),
      displaced,
      duplicateWindowMs,
    });
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
        this.mostRevisedHeld = Math.max(this.mostRevisedHeld, refold.revisedCount);
        if (refold.revisedCount > 1) written.push(...refold.takeRevised());
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

/** What stays as it is must not be written again. */
function requireChange(logged: LoggedEvent | undefined, now: Omit<RevisedEvent, "event">): void {
  const textOf = ({ outcome, warning, after }: Omit<RevisedEvent, "event"> | LoggedEvent) => {
    const { state, eventId, content } = after;
    return [outcome, warning, state, eventId, content?.digest, content?.newestKeylessSequence].join();
  };
  if (logged === undefined || textOf(logged) === textOf(now)) throw new Error("A revised event has changed.");
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

/** Whether the booking and its log are as if the events had been on time. */
function expectOnTime(booking: Booking, history: FoldEvent[], of: object): void {
  const steps = foldEvents(null, history, { earlierCreates: new Map(), duplicateWindowMs });
  const decider = steps.at(-1)?.after.eventId;
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
  if (JSON.stringify(seen) !== JSON.stringify(wanted)) expect({ ...of, ...seen }).toEqual({ ...of, ...wanted });
}

describe("late events", () => {
  test("leave a booking and its log as if they had been on time", { timeout: 60_000 }, () => {
    for (const history of allHistories(eventCount)) {
      for (let pattern = 1; pattern < 2 ** (eventCount - 1); pattern += 1) {
        const arrived = arrivalOrder(history, pattern);
        const booking = new Booking();
        for (const one of arrived) booking.apply([one]);
        expectOnTime(booking, history, { history, pattern });
      }
    }
  });

  test("may come together", { timeout: 60_000 }, () => {
    for (const history of allHistories(eventCount)) {
      for (let pattern = 1; pattern < 2 ** (eventCount - 1); pattern += 1) {
        const arrived = arrivalOrder(history, pattern);
        const onTime = arrived.indexOf(history.at(-1) as FoldEvent) + 1;
        const booking = new Booking();
        for (const one of arrived.slice(0, onTime)) booking.apply([one]);
        booking.apply(arrived.slice(onTime).toSorted(comparePlaces));
        expectOnTime(booking, history, { history, pattern });
      }
    }
  });

  test("take the place of later events that repeat them", { timeout: 60_000 }, () => {
    const count = eventCount - 1;
    for (const sent of allHistories(count)) {
      for (let pattern = 0; pattern < 2 ** (count - 1); pattern += 1) {
        for (let repeated = 0; repeated < count; repeated += 1) {
          for (let place = 0; place <= repeated; place += 1) {
            const history = sent.map((one, index) => ({ ...one, hasIdempotencyKey: index === repeated }));
            const repetition = history[repeated] as FoldEvent;
            const late = {
              ...repetition,
              id: "late",
              sequence: place * 1_000 + 500,
              receivedAt: new Date(place + 0.5),
            };
            const arrived = arrivalOrder(history, pattern);
            const counting = [...history.filter((one) => one !== repetition), late].sort(comparePlaces);
            for (const together of [0, 1]) {
              const before = arrived.slice(0, arrived.length - together);
              if (!before.includes(repetition)) continue;
              const booking = new Booking();
              for (const one of before) booking.apply([one]);
              booking.apply([late, ...arrived.slice(before.length)].sort(comparePlaces), [repetition]);
              expectOnTime(booking, counting, { history, pattern, late, together });
            }
          }
        }
      }
    }
  });

  test("take their places by their ids if all sequences are equal", { timeout: 60_000 }, () => {
    for (const sent of allHistories(eventCount - 1)) {
      const history = sent.map((one) => ({ ...one, sequence: 1_000, hasIdempotencyKey: true }));
      for (let pattern = 0; pattern < 2 ** (history.length - 1); pattern += 1) {
        const booking = new Booking();
        for (const one of arrivalOrder(history, pattern)) booking.apply([one]);
        expectOnTime(booking, history, { history, pattern });
      }
    }
  });

  test("change nothing if the log is gone that would tell what they do", () => {
    const booking = new Booking();
    booking.apply([event("create A", 1)]);
    booking.apply([event("update B", 3)]);
    const before = booking.state;
    booking.forget(() => true);
    booking.apply([event("update C", 2)]);
    expect(booking.state).toEqual(before);
    expect(booking.recorded).toMatchObject([{ id: "e2", outcome: "superseded" }]);
  });

  test("leave a booking as if they had been on time, though its first events are gone", { timeout: 60_000 }, () => {
    const isOld = ({ sequence }: FoldEvent) => sequence < 100_000;
    for (const sent of allHistories(eventCount)) {
      for (let oldCount = 1; oldCount <= 3; oldCount += 1) {
        // Old events are so old that nothing can repeat them.
        const history = sent.map((one, index) => {
          const number = index < oldCount ? index + 1 : 100 + index;
          return { ...one, id: `e${number}`, sequence: number * 1_000, receivedAt: new Date(number) };
        });
        const wanted =
          foldEvents(null, history, { earlierCreates: new Map(), duplicateWindowMs }).at(-1)?.after ?? null;
        for (let pattern = 1; pattern < 2 ** (eventCount - 1 - oldCount); pattern += 1) {
          const booking = new Booking();
          const recent = arrivalOrder(history.slice(oldCount), pattern);
          for (const one of history.slice(0, oldCount)) booking.apply([one]);
          for (const one of recent) {
            booking.forget(isOld);
            booking.apply([one]);
          }
          const seen = withoutSource(booking.state);
          if (JSON.stringify(seen) !== JSON.stringify(withoutSource(wanted)))
            expect({ history, pattern, seen }).toEqual({ history, pattern, seen: withoutSource(wanted) });
        }
      }
    }
  });

  test("are no earlier creates of the event before them that decides in the end", () => {
    const repetition = { ...event("update B", 5), hasIdempotencyKey: true };
    const [first, second, decider] = [event("update C", 1), event("update D", 2), event("create A", 3)];
    const booking = new Booking();
    for (const one of [first, second, repetition, decider]) booking.apply([one]);
    const [late, create] = [{ ...repetition, id: "late", sequence: 1_500 }, event("create A", 4)];
    booking.apply([late, create], [repetition]);
    expectOnTime(booking, [first, late, second, decider, create], { late });
  });

  test.each([
    [[41], 1],
    [[41, 43], 1],
    [[41, 61], 2],
  ])("read no more of the log than they change: after %j, pages: %i", (late, pages) => {
    const booking = new Booking();
    for (let number = 2; number <= 100; number += 2) booking.apply([event(`update ${number}`, number)]);
    booking.apply(late.map((number) => event(`update late ${number}`, number)));
    expect(booking.pagesRead).toBe(pages);
  });

  test("hand over what they revise page by page", () => {
    const booking = new Booking();
    for (let number = 2; number <= 50; number += 1) booking.apply([event("update A", number)]);
    booking.apply([event("update A", 1)]);
    expect(new Set(booking.recorded.map(({ decidedBy }) => decidedBy))).toEqual(new Set(["e1"]));
    expect(booking.mostRevisedHeld).toBeLessThan(5);
  });
});
