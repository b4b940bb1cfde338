import type { FeedChange } from "@booking-events/store";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BookingChange } from "../read-changes.ts";
import type { DeliveryFilter } from "./consumer-options.ts";
import { type Handed, judge, kindsThatStandForOthers, kindsToLookAt, needsMemory } from "./filter.ts";

type Judged = Pick<BookingChange, "change" | "changedAt" | "payload">;

function aChange(change: FeedChange, content: { country?: string; date?: string } | null = {}): Judged {
  const payload = content && {
    ...(content.country !== undefined && { consumerTripDestinationCountryName: content.country }),
    ...(content.date !== undefined && { consumerTripArrivalDate: content.date }),
  };
  return { change, changedAt: new Date("2026-11-26T23:59:59.999Z"), payload: payload as BookingChange["payload"] };
}

/** @returns for each change whether it is handed over */
function hand(filter: DeliveryFilter, changes: Judged[]): boolean[] {
  let handed: Handed = "never";
  return changes.map((change) => {
    const judged = judge(filter, change, handed);
    handed = judged.handed;
    return judged.isWanted;
  });
}

describe("a filter by country", () => {
  const filter = { countries: ["ES"] };
  test.each([
    ["ES", true],
    ["Spain ", true],
    ["España", true],
    ["France", false],
    ["?", false],
    [undefined, false],
  ])("reads %j as any reader of bookings does", (country, isWanted) => {
    expect(hand(filter, [aChange("created", country === undefined ? {} : { country })])).toEqual([isWanted]);
  });

  test("reports a booking once more when it leaves, and again when it is back", () => {
    const changes = ["Spain", "Spain", "France", "France", "Spain"].map((country) => aChange("updated", { country }));
    expect(hand(filter, changes)).toEqual([true, true, true, false, true]);
  });

  test.each(["deleted", "erased"] as const)(
    "reports a booking that was handed over when it is %s, wherever it goes",
    (change) => {
      const [spain, france] = ["Spain", "France"].map((country) => aChange("updated", { country })) as [Judged, Judged];
      expect(hand(filter, [france, aChange(change, null)])).toEqual([false, false]);
      expect(hand(filter, [spain, aChange(change, null)])).toEqual([true, true]);
      expect(hand(filter, [spain, france, aChange(change, null)])).toEqual([true, true, true]);
    },
  );
});

const arrival = { fromDays: 0, toDays: 7 };

describe("a filter by arrival", () => {
  test.each([
    ["2026-11-25", false],
    ["2026-11-26", true],
    ["2026-12-03T23:00:00-08:00", true],
    ["2026-12-04", false],
    ["0001-01-01", false],
    ["soon", false],
  ])("compares %s with the day of the change in UTC", (date, isWanted) => {
    expect(hand({ arrival }, [aChange("created", { date })])).toEqual([isWanted]);
  });
});

test("a filter by change reports those, and when a booking that was handed over is deleted or erased", () => {
  const changes = (["updated", "created", "updated", "deleted", "recreated", "erased"] as const).map((change) =>
    aChange(change, change === "deleted" || change === "erased" ? null : {}),
  );
  expect(hand({ changes: ["created"] }, changes)).toEqual([false, true, false, true, false, true]);
});

test("a filter by change that names the end of bookings reports that of any", () => {
  const [deleted, erased] = [aChange("deleted", null), aChange("erased", null)];
  expect(hand({ changes: ["deleted"] }, [erased])).toEqual([false]);
  expect(hand({ changes: ["deleted"] }, [deleted])).toEqual([true]);
  expect(hand({ changes: ["deleted"], countries: ["ES"] }, [deleted])).toEqual([false]);
  expect(hand({ changes: ["deleted"], arrival }, [deleted])).toEqual([false]);
  expect(hand({}, [deleted])).toEqual([false]);
});

test("a change whose content is gone is reported like an end", () => {
  const gone = aChange("updated", null);
  expect(hand({ countries: ["ES"] }, [gone, aChange("updated", { country: "ES" }), gone])).toEqual([false, true, true]);
});

test.each([
  [{}, false],
  [{ partners: ["acme"] }, false],
  [{ changes: ["created"] }, true],
  [{ countries: ["ES"] }, true],
  [{ arrival }, true],
] satisfies [DeliveryFilter, boolean][])(
  "that a booking was handed over is remembered for %j: %j",
  (filter, isNeeded) => {
    expect(needsMemory(filter)).toBe(isNeeded);
  },
);

test.each([
  [{}, null, null],
  [{ countries: ["ES"] }, null, null],
  [{ changes: ["created"] }, ["created", "deleted", "erased"], ["created", "deleted", "erased"]],
  [{ changes: ["created"], countries: ["ES"] }, null, ["created", "deleted", "erased"]],
  [{ changes: ["created"], arrival }, null, ["created", "deleted", "erased"]],
] satisfies [DeliveryFilter, FeedChange[] | null, FeedChange[] | null][])(
  "for %j, %j are looked at, and %j stand for others",
  (filter, lookedAt, standing) => {
    expect(kindsToLookAt(filter)).toEqual(lookedAt);
    expect(kindsThatStandForOthers(filter)).toEqual(standing);
  },
);

const anyChange = fc
  .record({
    change: fc.constantFrom<FeedChange>("created", "updated", "deleted", "recreated", "erased"),
    country: fc.constantFrom("ES", "FR"),
    date: fc.constantFrom("2026-11-26", "2027-11-26"),
  })
  .map(({ change, ...content }) => aChange(change, change === "deleted" || change === "erased" ? null : content));
const anyFilter: fc.Arbitrary<DeliveryFilter> = fc.record(
  {
    changes: fc.constantFrom<FeedChange[]>(["created"], ["updated"], ["deleted"]),
    countries: fc.constant(["ES"]),
    arrival: fc.constant(arrival),
  },
  { requiredKeys: [] },
);

test("whoever was handed a booking is told of its end, and nobody else is", () => {
  fc.assert(
    fc.property(anyFilter, fc.array(anyChange, { maxLength: 20 }), (filter, changes) => {
      const handed = hand(filter, changes);
      for (const [index, { change }] of changes.entries()) {
        const isKnown = handed.slice(0, index).includes(true);
        const { changes: kinds, countries, arrival } = filter;
        const isAskedFor = countries === undefined && arrival === undefined && kinds?.includes(change) === true;
        if (change === "erased" || change === "deleted") expect(handed[index]).toBe(isKnown || isAskedFor);
      }
    }),
  );
});
