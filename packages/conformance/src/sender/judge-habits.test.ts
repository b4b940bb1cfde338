import { expect, test } from "vitest";
import { habits } from "./judge-habits.ts";
import { type Attempt, SentEvents } from "./sent-events.ts";

interface Sent {
  content: string;
  kind?: "create" | "update" | "delete";
  booking?: string;
  key?: string;
  /** From when to when a request is unanswered. */
  during: [number, number];
  isDecided?: boolean;
}

/** What the habits say of these requests, by name. */
function judge(...requests: Sent[]): Record<string, readonly string[] | undefined> {
  const events = new SentEvents();
  for (const { content, kind = "update", booking = "TRIP-1", key, during, isDecided = true } of requests) {
    const [arrivedAtMs, endedAtMs] = during;
    const attempt: Attempt = {
      arrivedAtMs,
      endedAtMs,
      isDecided,
      key,
      type: "application/json",
      body: Buffer.alloc(0),
    };
    events.add({ kind, booking, content }, attempt);
  }
  return Object.fromEntries(habits.map(({ name, judge }) => [name, judge(events.all)]));
}

test("events of one booking, each with a key of its own and after the one before, are as they should be", () => {
  const verdict = judge(
    { content: "A", kind: "create", key: "1", during: [0, 1], isDecided: false },
    { content: "A", kind: "create", key: "1", during: [2, 3] },
    { content: "B", key: "2", during: [4, 5] },
    { content: "A", key: "3", during: [6, 7] },
    { content: "A", kind: "delete", key: "4", during: [8, 9] },
  );

  expect(verdict).toEqual({ "own-keys": [], "one-after-another": [] });
});

test("a return to earlier content under its key is a reused key, and so is one key for several bookings", () => {
  const returning = judge(
    { content: "A", key: "1", during: [0, 1] },
    { content: "B", key: "1", during: [2, 3] },
    { content: "A", key: "1", during: [4, 5] },
  );
  const constant = judge(
    { content: "A", key: "1", during: [0, 1] },
    { content: "C", key: "1", booking: "TRIP-2", during: [2, 3] },
  );

  expect(returning["own-keys"]).toEqual([
    "event 2 (update) has the key of event 1 (update)",
    "event 3 (update) has the key of event 1 (update)",
  ]);
  expect(constant["own-keys"]).toEqual(["event 2 (update) has the key of event 1 (update)"]);
});

test("an event that is sent while an earlier one of its booking waits for an answer is named", () => {
  const verdict = judge(
    { content: "A", kind: "create", key: "1", during: [0, 5] },
    { content: "B", key: "2", during: [3, 4] },
  );

  expect(verdict["one-after-another"]).toEqual([
    "event 2 (update) was sent before event 1 (create), of the same booking, had its answer",
  ]);
});

test("an event that is sent again after a later one of its booking is named; one that was given up is not", () => {
  const givenUp: Sent[] = [
    { content: "A", key: "1", during: [0, 1], isDecided: false },
    { content: "B", key: "2", during: [2, 3] },
  ];

  expect(judge(...givenUp)["one-after-another"]).toEqual([]);
  expect(judge(...givenUp, { content: "A", key: "1", during: [4, 5] })["one-after-another"]).toEqual([
    "event 1 (update) was sent again after event 2 (update), of the same booking",
  ]);
});

test("the order shows only in two events of one booking", () => {
  const verdict = judge({ content: "A", during: [0, 1] }, { content: "A", booking: "TRIP-2", during: [0, 1] });

  expect(verdict["one-after-another"]).toBeUndefined();
});

test("other content in an attempt without a new key is the same event, which the scenario judges", () => {
  const events = new SentEvents();
  const attempt: Attempt = { arrivedAtMs: 0, key: "1", type: undefined, body: Buffer.alloc(0) };
  events.add({ kind: "update", booking: "TRIP-1", content: "A" }, attempt);
  events.add({ kind: "update", booking: "TRIP-1", content: "A at another time" }, attempt);

  expect(events.all.map(({ attempts }) => attempts.length)).toEqual([2]);
});
