import { type BookingState, foldEvents } from "@booking-events/bookings";
import type { EventKind } from "@booking-events/schema";
import type { BookingRow, CreatesAround, LoggedEvent } from "@booking-events/store";
import { describe, expect, test } from "vitest";
import type { IncomingEvent } from "./incoming-event.ts";
import { type BookingWork, needsRefolding, planBooking } from "./plan-booking.ts";
import type { Refolding } from "./refold-booking.ts";

const duplicateWindowMs = 1;
const windowMicroseconds = 1_000;
const bookingKey = Buffer.from("the key of the booking");
const subject = { partner: "acme", referenceKind: "trip", reference: "N1" } as const;

/** Hex digests, as the content "a" or "b" stands for one. */
const digestOf = (content: string) => content.repeat(64);

/** "create a", "update b +key", "delete": it happens at its sequence, and is called after it. */
function event(text: string, sequence: number): IncomingEvent {
  const [kind, content = "d"] = text.split(" ");
  const idempotencyKey = text.endsWith(" +key") ? "key" : null;
  return {
    ...{ ...subject, bookingKey, id: `e${sequence}`, kind: kind as EventKind, sequence, payload: "{}" },
    ...{ idempotencyKey, hasIdempotencyKey: idempotencyKey !== null, contentDigest: digestOf(content) },
    receivedAt: new Date(sequence),
  };
}

/** The booking after such events. */
function stateAfter(...events: IncomingEvent[]): BookingState {
  const after = foldEvents(null, events, { earlierCreates: new Map(), duplicateWindowMs }).at(-1)?.after;
  if (after === undefined) throw new Error("A booking has an event.");
  return after;
}

/** The same as a row. */
function rowAfter(...events: IncomingEvent[]): BookingRow {
  const { content, ...state } = stateAfter(...events);
  return {
    ...{ ...subject, ...state, bookingKey },
    contentDigest: content === null ? null : Buffer.from(content.digest, "hex"),
    contentEventId: content?.eventId ?? null,
    contentSequence: content?.newestKeylessSequence ?? null,
  };
}

const nothingSettled = { duplicates: new Map(), displaced: [], reusing: new Set<string>(), reusingInLog: [] };

function plan(
  row: BookingRow | null,
  events: IncomingEvent[],
  { refolding, earlier = {} }: { refolding?: Refolding; earlier?: Record<string, number | null> } = {},
) {
  const work: BookingWork = { ...subject, bookingKey, row, events, newEvents: events, settlement: nothingSettled };
  const creates = Object.entries(earlier).map(([id, earlier]): [string, CreatesAround] => [
    id,
    { earlier, nextId: null, nextSequence: null },
  ]);
  const planned = planBooking(work, refolding, new Map(creates), duplicateWindowMs);
  const outcomes = Object.fromEntries([...planned.recorded].map(([id, { outcome }]) => [id, outcome]));
  return { ...planned, outcomes };
}

describe("a new booking", () => {
  test("is what its events make of it, and the feed tells each change", () => {
    const [create, repetition, update] = [event("create a", 1), event("update a", 2), event("update b", 3)];
    const planned = plan(null, [create, repetition, update]);
    expect(planned.booking).toEqual({
      ...{ ...subject, bookingKey, state: "active", eventId: "e3", sequence: 3, lastSequence: 3 },
      ...{ contentDigest: Buffer.from(digestOf("b"), "hex"), contentEventId: "e3", contentSequence: 3 },
      ...{ createdAt: new Date(1), updatedAt: new Date(3), deletedAt: null, keepsPayload: false },
    });
    expect(planned.changes).toEqual([
      { ...subject, change: "created", eventId: "e1", sequence: 1 },
      { ...subject, change: "updated", eventId: "e3", sequence: 3 },
    ]);
    expect([...planned.recorded]).toEqual([
      ["e1", { outcome: "created", after: stateAfter(create) }],
      ["e2", { outcome: "unchanged", after: stateAfter(create, repetition) }],
      ["e3", { outcome: "updated", after: stateAfter(create, repetition, update) }],
    ]);
    expect(planned.revised).toEqual([]);
  });

  test("has no content after a delete", () => {
    expect(plan(null, [event("delete", 1)]).booking).toMatchObject({
      ...{ state: "deleted", contentDigest: null, contentEventId: null, contentSequence: null, keepsPayload: false },
    });
  });

  test("has no booking without an event", () => {
    expect(() => plan(null, [])).toThrow("A booking that a batch touches has an event of it.");
  });
});

describe("a known booking", () => {
  test("goes on from its row, and keeps its payload while its content is the same", () => {
    const [create, repetition, update] = [event("create a", 1), event("update a", 2), event("update b", 3)];
    const unchanged = plan(rowAfter(create), [repetition]);
    expect(unchanged.booking).toEqual({ ...rowAfter(create, repetition), keepsPayload: true });
    expect(unchanged.changes).toEqual([]);
    const changed = plan(rowAfter(create, repetition), [update]);
    expect(changed.booking).toEqual({ ...rowAfter(create, repetition, update), keepsPayload: false });
    expect(changed.changes).toEqual([{ ...subject, change: "updated", eventId: "e3", sequence: 3 }]);
  });

  test("keeps that it has no payload, and gets one with its first content", () => {
    const row = rowAfter(event("delete", 1));
    expect(plan(row, [event("delete", 2)]).booking.keepsPayload).toBe(true);
    expect(plan(row, [event("create a", 2)]).booking.keepsPayload).toBe(false);
  });

  test("takes a create that repeats one in its log for a repetition, which is no change", () => {
    const row = rowAfter(event("create a", 1), event("update b", 2));
    const again = [event("create a", 3)];
    expect(plan(row, again, { earlier: { e3: 1 } })).toMatchObject({ outcomes: { e3: "duplicate" }, changes: [] });
    expect(plan(row, again, { earlier: { e3: null } }).outcomes).toEqual({ e3: "updated" });
    expect(plan(row, again).outcomes).toEqual({ e3: "updated" });
  });
});

describe("late events", () => {
  const [first, second] = [event("create a", 10), event("update b", 20)];
  const row = rowAfter(first, second);

  /** What has become of a booking after late events took their places. */
  function refolded(state: BookingState, late: IncomingEvent[]): Refolding {
    return {
      state,
      late: new Map(late.map(({ id }) => [id, { outcome: "updated", after: stateAfter(first) }])),
      revised: [],
    };
  }

  test("that change nothing of the booking are superseded, and no feed tells of them", () => {
    const late = event("update c", 15);
    const planned = plan(row, [late], { refolding: refolded(stateAfter(first, late, second), [late]) });
    expect(planned.booking).toEqual({ ...row, keepsPayload: true });
    expect(planned.recorded).toEqual(new Map([["e15", { outcome: "superseded", after: stateAfter(first) }]]));
    expect(planned.changes).toEqual([]);
  });

  test("that decide the booking's state keep their outcome, and the feed tells the change", () => {
    const [before, decides] = [event("update c", 15), event("update a", 20)];
    const state = stateAfter(first, before, second, decides);
    const planned = plan(row, [before, decides], { refolding: refolded(state, [before, decides]) });
    expect(planned.outcomes).toEqual({ e15: "superseded", e20: "updated" });
    expect(planned.booking).toMatchObject({ eventId: "e20", keepsPayload: false });
    expect(planned.changes).toEqual([{ ...subject, change: "updated", eventId: "e20", sequence: 20 }]);
  });

  test("are folded before those that are on time, which go on from there", () => {
    const [late, onTime] = [event("update c", 15), event("delete", 30)];
    const state = stateAfter(first, late, second);
    const planned = plan(row, [late, onTime], { refolding: refolded(state, [late]) });
    expect(planned.outcomes).toEqual({ e15: "superseded", e30: "deleted" });
    expect(planned.booking).toEqual({ ...rowAfter(first, late, second, onTime), keepsPayload: true });
    expect(planned.changes).toEqual([{ ...subject, change: "deleted", eventId: "e30", sequence: 30 }]);
  });

  const active = stateAfter(first);
  const deleted = stateAfter(first, event("delete", 12));
  test.each<[before: IncomingEvent[], after: BookingState, change: string | undefined]>([
    [[first], stateAfter(event("create b", 10)), "updated"],
    [[first], { ...active, eventId: "e5" }, undefined],
    [[first], deleted, "deleted"],
    [[first, event("delete", 12)], active, "recreated"],
    [[first, event("delete", 12)], stateAfter(event("delete", 5)), undefined],
  ])("tell the feed what leads from the state that stood to the right one (%#)", (before, after, change) => {
    const planned = plan(rowAfter(...before), [event("update c", 5)], { refolding: refolded(after, []) });
    expect(planned.changes.map(({ change }) => change)).toEqual(change === undefined ? [] : [change]);
  });

  test.each([
    ["a booking that is new has none", null, [1, 2], false],
    ["what comes after all of the booking's events is on time", row, [21, 22], false],
    ["what comes before one of them", row, [15, 22], true],
    ["what has the sequence of the last one, which may come before it", row, [20], true],
  ])("need the log: %s", (_what, row, sequences, isNeeded) => {
    const events = sequences.map((sequence) => event("update c", sequence));
    expect(needsRefolding({ ...subject, bookingKey, row, events, newEvents: events, settlement: nothingSettled })).toBe(
      isNeeded,
    );
  });

  test("revise what the log says of others", () => {
    const late = event("update c", 15);
    const state = stateAfter(first, late, second);
    const logged: LoggedEvent = { ...second, outcome: "unchanged", earlierCreate: null, after: null };
    const refolding = { ...refolded(state, [late]), revised: [{ event: logged, outcome: "updated", after: state }] };
    expect(plan(row, [late], { refolding: refolding as Refolding }).revised).toEqual([
      { id: "e20", kind: "update", contentDigest: Buffer.from(digestOf("b"), "hex"), outcome: "updated", after: state },
    ]);
  });

  /** Each was received so long before the one on time that only the newest can be what it repeats. */
  describe("among the creates that one on time may repeat", () => {
    const [tooOld, inTime] = [10, 11];
    const newest = event("update b", 900);
    const again = event("create a", tooOld + windowMicroseconds + 1);

    function outcomeOfRepetition(late: IncomingEvent[], inLog: number | null): string | undefined {
      const refolding = refolded(stateAfter(event("create a", 1), newest), late);
      const earlier = { [again.id]: inLog };
      return plan(rowAfter(newest), [...late, again], { refolding, earlier }).outcomes[again.id];
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
