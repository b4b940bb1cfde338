import type { EventKind } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import type { LoggedEvent } from "./booking-log.ts";
import { type BookingState, type FoldEvent, foldEvents } from "./fold.ts";
import { findLateEvents, planBooking } from "./plan-booking.ts";
import type { Refolding } from "./refold.ts";

const duplicateWindowMs = 1;
const windowMicroseconds = 1_000;

/** The digest of the content "a", "b" and so on. */
const digestOf = (content: string) => content.repeat(64);

/** From "create a", "update b +key" or "delete". The id and the time of receipt follow from the sequence. */
function event(text: string, sequence: number): FoldEvent {
  const [kind, content = "d"] = text.split(" ");
  return {
    ...{ id: `e${sequence}`, kind: kind as EventKind, sequence, contentDigest: digestOf(content) },
    ...{ hasIdempotencyKey: text.endsWith(" +key"), receivedAt: new Date(sequence) },
  };
}

function stateAfter(...events: FoldEvent[]): BookingState {
  const after = foldEvents(null, events, { earlierCreates: new Map(), duplicateWindowMs }).at(-1)?.after;
  if (after === undefined) throw new Error("A booking has at least one event.");
  return after;
}

function plan(
  stored: BookingState | null,
  events: FoldEvent[],
  {
    refolding,
    earlier = {},
    feedEventId = stored?.eventId ?? null,
  }: { refolding?: Refolding; earlier?: Record<string, number | null>; feedEventId?: string | null } = {},
) {
  const creates = new Map(Object.entries(earlier).map(([id, earlier]) => [id, { earlier }]));
  const planned = planBooking({ stored, feedEventId, events }, { refolding, creates, duplicateWindowMs });
  const outcomes = Object.fromEntries([...planned.recorded].map(([id, { outcome }]) => [id, outcome]));
  return { ...planned, outcomes };
}

describe("a new booking", () => {
  test("has the state after its events, and every change is in the feed", () => {
    const [create, repetition, update] = [event("create a", 1), event("update a", 2), event("update b", 3)];
    const planned = plan(null, [create, repetition, update]);
    expect(planned.state).toEqual({
      ...{ state: "active", eventId: "e3", sequence: 3, lastSequence: 3 },
      content: { digest: digestOf("b"), eventId: "e3", newestKeylessSequence: 3 },
      ...{ createdAt: new Date(1), updatedAt: new Date(3), deletedAt: null },
    });
    expect(planned.keepsContent).toBe(false);
    expect(planned.changes).toEqual([
      { change: "created", eventId: "e1", sequence: 1, previousEventId: null },
      { change: "updated", eventId: "e3", sequence: 3, previousEventId: "e1" },
    ]);
    expect([...planned.recorded]).toEqual([
      ["e1", { outcome: "created", warning: null, after: stateAfter(create) }],
      ["e2", { outcome: "unchanged", warning: null, after: stateAfter(create, repetition) }],
      ["e3", { outcome: "updated", warning: null, after: stateAfter(create, repetition, update) }],
    ]);
    expect(planned.revised).toEqual([]);
  });

  test("has no content after a delete", () => {
    expect(plan(null, [event("delete", 1)])).toMatchObject({
      state: { state: "deleted", content: null },
      keepsContent: false,
    });
  });

  test("is not planned without an event", () => {
    expect(() => plan(null, [])).toThrow("A booking is planned only when it has new events.");
  });
});

describe("a known booking", () => {
  test("goes on from its stored state, and keeps its content until another one comes", () => {
    const [create, repetition, update] = [event("create a", 1), event("update a", 2), event("update b", 3)];
    const unchanged = plan(stateAfter(create), [repetition]);
    expect(unchanged).toMatchObject({ state: stateAfter(create, repetition), keepsContent: true, changes: [] });
    const changed = plan(stateAfter(create, repetition), [update]);
    expect(changed).toMatchObject({ state: stateAfter(create, repetition, update), keepsContent: false });
    expect(changed.changes).toEqual([{ change: "updated", eventId: "e3", sequence: 3, previousEventId: "e1" }]);
  });

  test("names the event that the feed named last, though another one has decided its state since", () => {
    const planned = plan(stateAfter(event("create a", 1)), [event("update b", 3), event("delete", 4)], {
      feedEventId: "e2",
    });
    expect(planned.changes).toEqual([
      { change: "updated", eventId: "e3", sequence: 3, previousEventId: "e2" },
      { change: "deleted", eventId: "e4", sequence: 4, previousEventId: "e3" },
    ]);
  });

  test("has no content until it gets its first one", () => {
    const tombstone = stateAfter(event("delete", 1));
    expect(plan(tombstone, [event("delete", 2)]).keepsContent).toBe(true);
    expect(plan(tombstone, [event("create a", 2)]).keepsContent).toBe(false);
  });

  test("is not changed by a create that repeats one in its log", () => {
    const stored = stateAfter(event("create a", 1), event("update b", 2));
    const again = [event("create a", 3)];
    expect(plan(stored, again, { earlier: { e3: 1 } })).toMatchObject({ outcomes: { e3: "duplicate" }, changes: [] });
    expect(plan(stored, again, { earlier: { e3: null } }).outcomes).toEqual({ e3: "updated" });
    expect(plan(stored, again).outcomes).toEqual({ e3: "updated" });
  });
});

describe("late events", () => {
  const [first, second] = [event("create a", 10), event("update b", 20)];
  const stored = stateAfter(first, second);

  function refolded(state: BookingState, late: FoldEvent[]): Refolding {
    return {
      state,
      late: new Map(late.map(({ id }) => [id, { outcome: "updated", warning: null, after: stateAfter(first) }])),
      revised: [],
    };
  }

  test("that don't change the booking are superseded, and the feed has no row for them", () => {
    const late = event("update c", 15);
    const planned = plan(stored, [late], { refolding: refolded(stateAfter(first, late, second), [late]) });
    expect(planned).toMatchObject({ state: stored, keepsContent: true });
    expect(planned.recorded).toEqual(
      new Map([["e15", { outcome: "superseded", warning: null, after: stateAfter(first) }]]),
    );
    expect(planned.changes).toEqual([]);
  });

  test("that decide the booking's state keep their outcomes, and the change is in the feed", () => {
    const [before, decides] = [event("update c", 15), event("update a", 20)];
    const state = stateAfter(first, before, second, decides);
    const planned = plan(stored, [before, decides], { refolding: refolded(state, [before, decides]) });
    expect(planned.outcomes).toEqual({ e15: "superseded", e20: "updated" });
    expect(planned).toMatchObject({ state: { eventId: "e20" }, keepsContent: false });
    expect(planned.changes).toEqual([{ change: "updated", eventId: "e20", sequence: 20, previousEventId: "e20" }]);
  });

  test("are folded before the events that are on time", () => {
    const [late, onTime] = [event("update c", 15), event("delete", 30)];
    const state = stateAfter(first, late, second);
    const planned = plan(stored, [late, onTime], { refolding: refolded(state, [late]) });
    expect(planned.outcomes).toEqual({ e15: "superseded", e30: "deleted" });
    expect(planned).toMatchObject({ state: stateAfter(first, late, second, onTime), keepsContent: true });
    expect(planned.changes).toEqual([{ change: "deleted", eventId: "e30", sequence: 30, previousEventId: "e20" }]);
  });

  const active = stateAfter(first);
  const deleted = stateAfter(first, event("delete", 12));
  test.each<[before: FoldEvent[], after: BookingState, change: string | undefined]>([
    [[first], stateAfter(event("create b", 10)), "updated"],
    [[first], { ...active, eventId: "e5" }, undefined],
    [[first], deleted, "deleted"],
    [[first, event("delete", 12)], active, "recreated"],
    [[first, event("delete", 12)], stateAfter(event("delete", 5)), undefined],
    [[first], { ...active, createdAt: new Date(5) }, "updated"],
    [[first, event("delete", 12)], { ...deleted, createdAt: new Date(5) }, undefined],
  ])("put one change in the feed, from the stored state to the right one (%#)", (before, after, change) => {
    const planned = plan(stateAfter(...before), [event("update c", 5)], { refolding: refolded(after, []) });
    const previousEventId = before.at(-1)?.id;
    expect(planned.changes.map(({ change, previousEventId }) => ({ change, previousEventId }))).toEqual(
      change === undefined ? [] : [{ change, previousEventId }],
    );
  });

  test.each([
    ["a new booking has none", null, [1, 2], []],
    ["an event after all of the booking's events is on time", stored, [21, 22], []],
    ["an event before one of them is late", stored, [15, 22], [15]],
    ["an event with the sequence of the last one may come before it", stored, [20, 21], [20]],
  ])("are found by their sequences: %s", (_what, stored, sequences, late) => {
    const events = sequences.map((sequence) => event("update c", sequence));
    expect(findLateEvents(stored, events).map(({ sequence }) => sequence)).toEqual(late);
  });

  test("revise logged events", () => {
    const late = event("update c", 15);
    const state = stateAfter(first, late, second);
    const logged: LoggedEvent = { ...second, outcome: "unchanged", warning: null, earlierCreate: null, after: state };
    const revised = [{ event: logged, outcome: "updated" as const, warning: null, after: state }];
    expect(plan(stored, [late], { refolding: { ...refolded(state, [late]), revised } }).revised).toEqual(revised);
  });

  /** Each was received so long before the event on time that the event can only repeat the newest of them. */
  describe("among the creates that an event on time may repeat", () => {
    const [tooOld, inTime] = [10, 11];
    const newest = event("update b", 900);
    const again = event("create a", tooOld + windowMicroseconds + 1);

    function outcomeOfRepetition(late: FoldEvent[], inLog: number | null): string | undefined {
      const refolding = refolded(stateAfter(event("create a", 1), newest), late);
      const earlier = { [again.id]: inLog };
      return plan(stateAfter(newest), [...late, again], { refolding, earlier }).outcomes[again.id];
    }

    test.each<[late: string[], at: number[], inLog: number | null, outcome: string]>([
      [["create a"], [inTime], null, "duplicate"],
      [["create a"], [tooOld], null, "updated"],
      [["create b"], [inTime], null, "updated"],
      [["update a"], [inTime], null, "updated"],
      [["create a +key"], [inTime], null, "updated"],
      [["create a"], [inTime], tooOld, "duplicate"],
      [["create a"], [tooOld], inTime, "duplicate"],
      [["create a"], [tooOld], tooOld, "updated"],
      [["create a", "create a"], [tooOld, inTime], null, "duplicate"],
    ])("%j at %j, with one in the log at %j: %s", (late, at, inLog, outcome) => {
      const events = late.map((text, index) => event(text, at[index] as number));
      expect(outcomeOfRepetition(events, inLog)).toBe(outcome);
    });
  });
});
