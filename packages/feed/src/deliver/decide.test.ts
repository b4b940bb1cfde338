import type { FeedChange } from "@booking-events/store";
import { describe, expect, test } from "vitest";
import type { BookingChange } from "../read-changes.ts";
import { type Decision, decide } from "./decide.ts";
import type { Found } from "./read-deliveries.ts";

type Sought = Parameters<typeof decide>[0];

/** A booking in Spain, or elsewhere. */
function aChange(id: number, { change = "updated" as FeedChange, country = "ES" } = {}): BookingChange {
  return {
    ...{ id, change, changedAt: new Date("2026-11-28"), payload: { consumerTripDestinationCountryName: country } },
  } as BookingChange;
}

const inSpain = { countries: ["ES"] };
const inFrance = aChange(5, { country: "FR" });
const waiting = { changeId: 3, sinceId: null, attempts: 2, isDead: false, hasFailed: true };
const untried = { ...waiting, attempts: 0, hasFailed: false };

/** Change 5 of a booking of which nothing else is known. */
const found: Found = {
  ...{ isHeld: true, doneId: null, waiting: null, handed: "never", nextId: null, change: aChange(5) },
};

const onNew = (more: Partial<Found>, sought: Partial<Sought> = {}) =>
  decide({ changeId: 5, isRetry: false, filter: {}, isLatest: true, ...sought }, { ...found, ...more });
/** The delivery that waits is due. */
const onDue = (more: Partial<Found>, sought: Partial<Sought> = {}) =>
  decide({ changeId: 3, isRetry: true, filter: {}, isLatest: true, ...sought }, { ...found, waiting, ...more });

const handing = (more: Partial<Decision> = {}) => ({
  ...{ kind: "hand", change: aChange(5), attempt: 1, sinceId: null, handed: null, ...more },
});

describe("a new change", () => {
  test("is handed over for the first time", () => {
    expect(onNew({})).toEqual(handing());
  });

  test("is left to the process that has the lease", () => {
    expect(onNew({ isHeld: false })).toEqual({ kind: "lost" });
  });

  test.each([
    [4, "hand"],
    [5, "nothing"],
    [6, "nothing"],
  ])("after change %i of its booking was done: %s", (doneId, kind) => {
    expect(onNew({ doneId }).kind).toBe(kind);
  });

  test("of a snapshot is handed over unless any change of its booking was done", () => {
    expect(onNew({}, { changeId: null })).toEqual(handing());
    expect(onNew({ doneId: 1 }, { changeId: null })).toEqual({ kind: "nothing" });
  });

  test("that is gone is not handed over", () => {
    expect(onNew({ change: null })).toEqual({ kind: "nothing" });
    expect(onNew({ change: null, waiting })).toEqual({ kind: "nothing" });
  });

  test("takes the place of what waits, if the newest is wanted", () => {
    expect(onNew({ waiting })).toEqual(handing({ sinceId: 3 }));
    expect(onNew({ waiting: { ...waiting, sinceId: 2 } })).toEqual(handing({ sinceId: 2 }));
  });

  test.each([5, 6])("waits if change %i of its booking does", (changeId) => {
    expect(onNew({ waiting: { ...waiting, changeId } })).toEqual({ kind: "waits" });
  });

  test("waits behind what waits if every change is wanted, unless the booking was erased", () => {
    expect(onNew({ waiting }, { isLatest: false })).toEqual({ kind: "waits" });
    const erased = aChange(5, { change: "erased" });
    expect(onNew({ waiting, change: erased }, { isLatest: false })).toEqual(handing({ change: erased, sinceId: 3 }));
  });
});

describe("a delivery that is due", () => {
  test("is handed over again, and stands for as many changes as before", () => {
    expect(onDue({ change: aChange(3) })).toEqual(handing({ change: aChange(3), attempt: 3 }));
    expect(onDue({ change: aChange(3), waiting: { ...waiting, sinceId: 2 } })).toEqual(
      handing({ change: aChange(3), attempt: 3, sinceId: 2 }),
    );
  });

  test("is handed over whatever was done of its booking before", () => {
    expect(onDue({ doneId: 9 }).kind).toBe("hand");
  });

  test("gives way to a newer change, which has all attempts", () => {
    expect(onDue({})).toEqual(handing({ sinceId: 3 }));
  });

  test.each([
    ["done", null],
    ["replaced", { ...waiting, changeId: 4 }],
    ["given up", { ...waiting, isDead: true }],
  ])("is forgotten if it was %s meanwhile", (_, now) => {
    expect(onDue({ waiting: now })).toEqual({ kind: "nothing" });
  });
});

describe("a filter", () => {
  test("is told what the consumer learns, unless that is what it knows", () => {
    expect(onNew({}, { filter: inSpain })).toEqual(handing({ handed: "inside" }));
    expect(onNew({ handed: "inside" }, { filter: inSpain })).toEqual(handing());
    expect(onNew({ handed: "inside", change: inFrance }, { filter: inSpain })).toEqual(
      handing({ change: inFrance, handed: "outside" }),
    );
  });

  test("leaves out what is not wanted, whether it is new or was never tried", () => {
    expect(onNew({ change: inFrance }, { filter: inSpain })).toEqual({ kind: "nothing" });
    expect(onDue({ change: inFrance, waiting: untried }, { filter: inSpain })).toEqual({ kind: "skip", changeId: 5 });
  });

  test.each([
    ["new", onNew],
    ["due", onDue],
  ])("lets a %s change through that takes the place of one which has failed", (_, decideOn) => {
    expect(decideOn({ change: inFrance, waiting }, { filter: inSpain })).toEqual(
      handing({ change: inFrance, sinceId: 3 }),
    );
  });

  test("of partners only remembers nothing", () => {
    expect(onNew({}, { filter: { partners: ["acme"] } })).toEqual(handing());
  });
});
