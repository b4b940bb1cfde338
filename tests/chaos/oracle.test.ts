import type { EventKind } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import { type ExpectedOutcome, expectBookings, type OracleEvent } from "./oracle.ts";

const hourMs = 3_600_000;
const windowMs = 72 * hourMs;

/** `create A`, `update B key k1`, `delete`, `+80h create A`: one event each, received in this order. */
function history(...lines: string[]): OracleEvent[] {
  let atMs = 0;
  return lines.map((line, index) => {
    const [, hours, kind, content = "", idempotencyKey = null] =
      /^(?:\+(\d+)h )?(\w+)(?: (?!key)(\w+))?(?: key (\w+))?$/.exec(line) ?? [];
    atMs += Number(hours ?? 0) * hourMs;
    return {
      id: String(index + 1),
      partner: "acme",
      reference: "T1",
      idempotencyKey,
      kind: kind as EventKind,
      content: kind === "delete" ? "the reference" : content,
      sequence: atMs * 1_000 + index + 1,
    };
  });
}

function lastOutcome(events: OracleEvent[]): ExpectedOutcome | undefined {
  return expectBookings(events, windowMs).outcomes.get(String(events.length));
}

describe.each<[before: string, lines: string[], expected: Record<string, ExpectedOutcome>]>([
  ["none", [], { "create A": "created", "update A": "created", delete: "deleted" }],
  [
    "active, holding what it was created with",
    ["create A"],
    {
      "create A": "unchanged",
      "update A": "unchanged",
      "create B": "updated",
      "update B": "updated",
      delete: "deleted",
    },
  ],
  [
    "active, holding an update",
    ["create A", "update B"],
    {
      "create A": "duplicate",
      "create A key k1": "updated",
      "+71h create A": "duplicate",
      "+73h create A": "updated",
      "create B": "unchanged",
      "create C": "updated",
      "update A": "updated",
    },
  ],
  [
    "active, created with a key",
    ["create A key k0", "update B"],
    { "create A": "updated", "create A key k0": "duplicate" },
  ],
  [
    "deleted",
    ["create A", "update B", "delete"],
    {
      "create A": "duplicate",
      "create A key k1": "recreated",
      "+73h create A": "recreated",
      "create B": "recreated",
      "update B": "duplicate",
      "update B key k1": "recreated",
      "+73h update B": "recreated",
      "update A": "recreated",
      delete: "unchanged",
    },
  ],
  ["deleted, never created", ["delete"], { "create A": "recreated", "update A": "recreated", delete: "unchanged" }],
  ["deleted, last content sent with a key", ["create A", "update B key k0", "delete"], { "update B": "recreated" }],
  [
    "deleted, last content sent with a key and once more without",
    ["create A", "update B key k0", "update B", "delete"],
    { "update B": "duplicate" },
  ],
])("a booking that is %s", (_, before, expected) => {
  test.each(Object.entries(expected))("%s → %s", (line, outcome) => {
    expect(lastOutcome(history(...before, line))).toBe(outcome);
  });
});

test("the state is that of the event that decided it, with what the booking holds or held", () => {
  const state = (...lines: string[]) => expectBookings(history(...lines), windowMs).bookings.get("acme T1");
  expect(state("create A", "update A")).toEqual({ state: "active", sequence: 1, content: "A" });
  expect(state("create A", "update B", "create A")).toEqual({ state: "active", sequence: 2, content: "B" });
  expect(state("create A", "delete", "delete")).toMatchObject({ state: "deleted", content: "A" });
  expect(state("delete")).toEqual({ state: "deleted", sequence: 1, content: null });
});

test("events are taken in the order of receipt, whatever the order of the rows", () => {
  const events = history("create A", "update B", "delete");
  expect(expectBookings(events.toReversed(), windowMs)).toEqual(expectBookings(events, windowMs));
});

test("of the events of a booking with one key, one kind and one content, only the one received first counts", () => {
  const events = history("create A key k1", "delete", "create A key k1");
  const { bookings, keyRepeats, keyReuses } = expectBookings(events.toReversed(), windowMs);
  expect(bookings.get("acme T1")).toMatchObject({ state: "deleted" });
  expect([...keyRepeats]).toEqual(["3"]);
  expect([...keyReuses]).toEqual([]);
});

test("a key that is used again with another kind or content is another event, and noted", () => {
  const events = history("create A key k1", "create B key k1", "update B key k1", "create B key k1");
  const { bookings, outcomes, keyRepeats, keyReuses } = expectBookings(events.toReversed(), windowMs);
  expect(bookings.get("acme T1")).toMatchObject({ state: "active", content: "B" });
  expect(Object.fromEntries(outcomes)).toEqual({ 1: "created", 2: "updated", 3: "unchanged", 4: "duplicate" });
  expect([...keyRepeats]).toEqual(["4"]);
  expect([...keyReuses].toSorted()).toEqual(["2", "3"]);
});

test("the same key of two partners or bookings is two keys", () => {
  const [first, second] = history("create A key k1", "create A key k1");
  if (first === undefined || second === undefined) throw new Error("There are two.");
  for (const other of [{ partner: "zenith" }, { reference: "T2" }])
    expect(expectBookings([first, { ...second, ...other }], windowMs).keyRepeats.size).toBe(0);
});
