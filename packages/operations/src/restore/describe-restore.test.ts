import { expect, test } from "vitest";
import { describeRestore } from "./describe-restore.ts";
import { type PlannedBooking, restoreReasons } from "./plan-restore.ts";
import { RestoreSummary } from "./summarise-restore.ts";

const at = new Date("2026-11-28T12:00:00Z");
const planned: PlannedBooking = {
  ...{ partner: "acme", referenceKind: "trip", reference: "T-1", action: null, reason: null },
  ...{ changedFields: [], changesOfOthers: 0, deadLetters: 0 },
};

function summarise(bookings: Partial<PlannedBooking>[], { maxShown = 10 } = {}): RestoreSummary {
  const summary = new RestoreSummary({ maxShown });
  for (const booking of bookings) summary.add({ ...planned, ...booking });
  return summary;
}

/** Without what there is nothing to say about. */
function describeLines(...args: Parameters<typeof describeRestore>): Record<string, string> {
  return Object.fromEntries(
    describeRestore(...args).flatMap(([label, value]) => (value === null ? [] : [[label, value]])),
  );
}

test("a preview says what would be done, what would not and why, and which fields change most", () => {
  const summary = summarise([
    { action: "update", changedFields: ["price", "note"], changesOfOthers: 2, deadLetters: 1 },
    { action: "update", changedFields: ["note", "seats"] },
    { action: "update", changedFields: ["note", "seats"] },
    { action: "delete", changedFields: ["price", "left out"], changesOfOthers: 1 },
    { reason: "same", deadLetters: 1 },
    { reason: "same" },
    { reason: "erased", changesOfOthers: 1 },
    { reason: "in-queue", deadLetters: 2 },
  ]);
  expect(summary.restorable).toBe(4);
  expect(describeLines(summary, at, null)).toEqual({
    "Put back": "3 bookings",
    Deleted: "1 booking",
    "Left as they are":
      "2: as it was, in state and content; " +
      "1: it has events that are not applied yet: wait, and begin again; 1: erased bookings never come back",
    Fields: "note (3), seats (2), price (1)",
    "Changes of others": "2 bookings had events of other secrets since, which are undone, too",
    "Dead letters": "2 bookings with open ones, which stay",
  });
});

test("a preview of nothing says no more", () => {
  expect(describeLines(summarise([]), at, null)).toEqual({ "Put back": "0 bookings", Deleted: "0 bookings" });
});

test("what was done is said with its results, and where the log begins if that is after the time", () => {
  const results = { queued: 1_000, applied: 998, superseded: 2, erased: 0, dead: 0, waiting: 0 };
  const begins = (logBegins: Date | null) => describeLines(summarise([]), at, { readAt: at, logBegins, results });
  const later = new Date(at.getTime() + 1);
  expect(begins(later)).toMatchObject({
    Log: "it begins at 2026-11-28T12:00:00Z, after that time",
    Queued: "1,000 events",
    Results: "998 applied, 2 superseded",
  });
  expect([at, null].map((logBegins) => begins(logBegins)["Log"])).toEqual([undefined, undefined]);
});

test("only so many fields are named", () => {
  const names = Array.from({ length: 22 }, (_, index) => `f${index}`);
  const describeFields = (count: number) =>
    describeLines(summarise([{ action: "update", changedFields: names.slice(0, count) }]), at, null)["Fields"];
  expect(describeFields(20)).toMatch(/, f19 \(1\)$/);
  expect(describeFields(22)).toMatch(/, f19 \(1\), and 2 more$/);
});

test("bookings are kept up to a limit, but none that are as they were", () => {
  const { shown, omitted, counts } = summarise(
    [{ reason: "same" }, { reason: "new" }, { action: "delete" }, { action: "update" }],
    { maxShown: 2 },
  );
  expect(shown.map(({ action, reason }) => action ?? reason)).toEqual(["new", "delete"]);
  expect(omitted).toBe(1);
  expect(counts).toMatchObject({ same: 1, new: 1, delete: 1, update: 1, unknown: 0 });
});

test("each reason for leaving a booking is explained in its own words", () => {
  const texts = Object.values(restoreReasons).filter((text) => text !== "");
  expect(new Set(texts).size).toBe(Object.keys(restoreReasons).length);
});
