import type { EventKind } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import { type BookingState, type FoldEvent, foldEvents, isSameState, recallContent } from "./fold.ts";

const hourMs = 3_600_000;
const duplicateWindowMs = 72 * hourMs;
const start = Date.UTC(2026, 10, 20);

interface EventNote {
  kind: EventKind;
  content: string;
  /** Hours after the first event. */
  at: number;
  key?: boolean;
}

/** "create A", "update B +key", "delete @80": kind, content, with an idempotency key, hours after the start. */
function note(text: string, index: number): EventNote {
  const [kind, ...rest] = text.split(" ");
  return {
    kind: kind as EventKind,
    content: rest.find((word) => /^[A-Z]$/.test(word)) ?? "-",
    at: Number(rest.find((word) => word.startsWith("@"))?.slice(1) ?? index),
    key: rest.includes("+key"),
  };
}

function toEvents(notes: string[]): FoldEvent[] {
  return notes.map(note).map(({ kind, content, at, key }, index) => ({
    id: `e${index + 1}`,
    kind,
    sequence: (start + at * hourMs) * 1_000 + index,
    hasIdempotencyKey: key === true,
    contentDigest: content,
    receivedAt: new Date(start + at * hourMs),
  }));
}

/**
 * Returns the outcomes of the events, and a state like "active A by e2": its content, and the event that decided it.
 */
function fold(...notes: string[]): { outcomes: string; state: string } {
  const steps = foldEvents(null, toEvents(notes), { earlierCreates: new Map(), duplicateWindowMs });
  const last = steps.at(-1)?.after;
  return {
    outcomes: steps.map(({ outcome }) => outcome).join(", "),
    state: `${last?.state} ${last?.content?.digest ?? "-"} by ${last?.eventId}`,
  };
}

describe("what an event does to its booking", () => {
  test.each<{ before: string; events: string[]; outcome: string; state: string }>([
    { before: "none", events: ["create A"], outcome: "created", state: "active A by e1" },
    { before: "none", events: ["update A"], outcome: "created", state: "active A by e1" },
    { before: "none", events: ["delete"], outcome: "deleted", state: "deleted - by e1" },

    { before: "active", events: ["create A", "create A"], outcome: "unchanged", state: "active A by e1" },
    {
      before: "active",
      events: ["create A", "update B", "create A"],
      outcome: "duplicate",
      state: "active B by e2",
    },
    { before: "active", events: ["create A", "create B"], outcome: "updated", state: "active B by e2" },
    { before: "active", events: ["create A", "update A"], outcome: "unchanged", state: "active A by e1" },
    { before: "active", events: ["create A", "update B"], outcome: "updated", state: "active B by e2" },
    { before: "active", events: ["create A", "delete"], outcome: "deleted", state: "deleted A by e2" },

    {
      before: "deleted",
      events: ["create A", "delete", "create A"],
      outcome: "duplicate",
      state: "deleted A by e2",
    },
    {
      before: "deleted",
      events: ["create A", "delete", "create B"],
      outcome: "recreated",
      state: "active B by e3",
    },
    {
      before: "deleted",
      events: ["create A", "update B", "delete", "update B"],
      outcome: "duplicate",
      state: "deleted B by e3",
    },
    {
      before: "deleted",
      events: ["create A", "update B", "delete", "update A"],
      outcome: "recreated",
      state: "active A by e4",
    },
    { before: "deleted", events: ["create A", "delete", "delete"], outcome: "unchanged", state: "deleted A by e2" },
    { before: "deleted", events: ["delete", "create A"], outcome: "recreated", state: "active A by e2" },
    { before: "deleted", events: ["delete", "update A"], outcome: "recreated", state: "active A by e2" },
  ])("$before: $events → $outcome", ({ events, outcome, state }) => {
    const folded = fold(...events);
    expect(folded.outcomes.split(", ").at(-1)).toBe(outcome);
    expect(folded.state).toBe(state);
  });
});

describe("what counts as a repetition", () => {
  test("updates from A to B and back to A apply", () => {
    expect(fold("create A", "update B", "update A")).toEqual({
      outcomes: "created, updated, updated",
      state: "active A by e3",
    });
  });

  test("a create repeats an earlier one until the end of the window, and not later", () => {
    expect(fold("create A @0", "update B @1", "create A @71").outcomes).toBe("created, updated, duplicate");
    expect(fold("create A @0", "update B @1", "create A @73").outcomes).toBe("created, updated, updated");
  });

  test("the window begins when the create was last sent", () => {
    expect(fold("create A @0", "update B @1", "create A @70", "create A @140").outcomes).toBe(
      "created, updated, duplicate, duplicate",
    );
  });

  test("a create with an idempotency key neither repeats nor is repeated", () => {
    expect(fold("create A", "update B", "create A +key").outcomes).toBe("created, updated, updated");
    expect(fold("create A +key", "update B", "create A").outcomes).toBe("created, updated, updated");
  });

  test("an update with an idempotency key neither repeats the deleted content nor is repeated", () => {
    expect(fold("update A", "delete", "update A +key").outcomes).toBe("created, deleted, recreated");
    expect(fold("update A +key", "delete", "update A").outcomes).toBe("created, deleted, recreated");
  });

  test("the window begins when the content was last sent before the delete", () => {
    expect(fold("create A @0", "update A @50", "delete @51", "update A @100").outcomes).toBe(
      "created, unchanged, deleted, duplicate",
    );
  });

  test("a create does not repeat the content of an update", () => {
    expect(fold("create A", "update B", "delete", "create B").outcomes).toBe("created, updated, deleted, recreated");
  });
});

test("folding in parts comes to the same as folding at once", () => {
  const events = toEvents(["create A", "update B", "create A", "delete", "update B", "update C", "create C", "delete"]);
  const options = { earlierCreates: new Map<string, number>(), duplicateWindowMs };
  const whole = foldEvents(null, events, options);
  for (let cut = 1; cut < events.length; cut += 1) {
    const head = events.slice(0, cut);
    const before = whole[cut - 1]?.after ?? null;
    const earlierCreates = new Map(
      head.filter(({ kind }) => kind === "create").map(({ contentDigest, sequence }) => [contentDigest, sequence]),
    );
    expect(foldEvents(before, events.slice(cut), { ...options, earlierCreates })).toEqual(whole.slice(cut));
  }
});

test("the times come from the events: first received, last change, delete", () => {
  const after = foldEvents(null, toEvents(["create A @0", "update A @1", "delete @2", "delete @3"]), {
    earlierCreates: new Map(),
    duplicateWindowMs,
  }).at(-1)?.after;
  expect(after).toMatchObject({
    createdAt: new Date(start),
    updatedAt: new Date(start + 2 * hourMs),
    deletedAt: new Date(start + 2 * hourMs),
  });
});

describe("later events do the same to two states", () => {
  const content = { digest: "A", eventId: "e1", newestKeylessSequence: 1 };
  const state: BookingState = {
    ...{ state: "active", eventId: "e1", sequence: 1, content, lastSequence: 1 },
    ...{ createdAt: new Date(0), updatedAt: new Date(0), deletedAt: null },
  };
  const more = (more: Partial<BookingState>) => ({ ...state, ...more });

  test("if the states differ in nothing that the fold reads", () => {
    expect(isSameState(state, more({ lastSequence: 2, createdAt: new Date(1) }))).toBe(true);
    expect(isSameState(more({ content: null }), more({ content: null }))).toBe(true);
  });

  test.each<[what: string, other: BookingState]>([
    ["the state", more({ state: "deleted" })],
    ["the event that decided it", more({ eventId: "e2" })],
    ["the content", more({ content: { ...content, digest: "B" } })],
    ["when the content was last sent", more({ content: { ...content, newestKeylessSequence: 2 } })],
    ["whether there is any content", more({ content: null })],
  ])("unless the states differ in %s", (_what, other) => {
    expect(isSameState(state, other)).toBe(false);
    expect(isSameState(other, state)).toBe(false);
  });
});

test("the booking still knows the content whose event has left the log, and no other", () => {
  const logged = { digest: "of e1", eventId: "e1", newestKeylessSequence: 1 };
  const stored = { digest: "A", eventId: "e1", newestKeylessSequence: 2 };
  expect(recallContent(logged, stored)).toEqual({ ...logged, digest: "A" });
  expect(recallContent(logged, { ...stored, eventId: "e2" })).toEqual(logged);
  expect(recallContent(logged, null)).toEqual(logged);
  expect(recallContent(null, stored)).toBeNull();
});
