import { describe, expect, test } from "vitest";
import { comparePlaces, findRepeats, type KeyedEvent, type KeyUses, type Repeats } from "./find-repeats.ts";

const sendings = [
  { kind: "create", contentDigest: "A", idempotencyKey: "k1" },
  { kind: "create", contentDigest: "B", idempotencyKey: "k1" },
  { kind: "update", contentDigest: "A", idempotencyKey: "k1" },
  { kind: "create", contentDigest: "A", idempotencyKey: "k2" },
] as const;
/** Enough for two equal events around a different one, in any order. */
const eventCount = 4;

test("what counts and what reuses a key depends neither on the order of arrival nor on the batches", () => {
  for (const history of allLists(sendings, eventCount)) {
    const events = history.map((sending, index) => ({ ...sending, id: `e${index}`, sequence: index }));
    const expected = events.map((event) => judge(event, events)).join();
    for (const arriving of allOrders(events)) {
      for (const ends of allLists([true, false], eventCount - 1)) {
        const log = new Log();
        for (const batch of cut(arriving, ends)) log.add(batch);
        const recorded = events.map(({ id }) => log.recorded(id)).join();
        // There are fifty thousand cases, and an assertion takes longer than a case does.
        if (recorded !== expected) expect({ arriving, ends, recorded }).toEqual({ arriving, ends, recorded: expected });
      }
    }
  }
});

describe("what is found names", () => {
  const place = (sequence: number) => ({ id: `e${sequence}`, sequence });
  const event = (sequence: number) => ({ ...place(sequence), ...sendings[0] });
  const other = { ...place(4), ...sendings[1] };
  const none = { duplicates: new Map(), displaced: [], reusing: new Set(), reusingInLog: [] };

  test("the event that counts, of several new ones that are one to their sender", () => {
    const repeats = findRepeats([event(2), event(3)], () => ({ first: null, same: null }));
    expect(repeats).toEqual({ ...none, duplicates: new Map([["e3", "e2"]]) });
  });

  test("the logged event, if it was received first", () => {
    const uses = { first: { ...place(1), kind: "create" }, same: place(1) } as const;
    const duplicates = new Map([
      ["e2", "e1"],
      ["e3", "e1"],
    ]);
    expect(findRepeats([event(2), event(3)], () => uses)).toEqual({ ...none, duplicates });
  });

  test("the logged event that no longer counts", () => {
    const uses = { first: { ...place(5), kind: "create" }, same: place(5) } as const;
    const displaced = [{ ...place(5), duplicateOf: "e2" }];
    expect(findRepeats([event(2)], () => uses)).toEqual({ ...none, displaced });
  });

  test("the logged event that reuses the key, with its kind", () => {
    const uses = { first: { ...place(5), kind: "delete" }, same: null } as const;
    const found = findRepeats([event(2), other], () => uses);
    expect(found).toEqual({ ...none, reusing: new Set(["e4"]), reusingInLog: [{ id: "e5", kind: "delete" }] });
  });

  test("no event without a key, and the log is not asked about it", () => {
    const unasked = () => {
      throw new Error("There is no key to ask about.");
    };
    const keyless = [event(1), event(2)].map((keyed) => ({ ...keyed, idempotencyKey: null }));
    expect(findRepeats(keyless, unasked)).toEqual(none);
  });
});

test("places are ordered by sequence, and by id if the sequences are equal", () => {
  const places = [
    { id: "a", sequence: 1 },
    { id: "c", sequence: 1 },
    { id: "b", sequence: 2 },
  ];
  for (const [at, one] of places.entries()) {
    for (const [otherAt, other] of places.entries())
      expect(Math.sign(comparePlaces(one, other))).toBe(Math.sign(at - otherAt));
  }
});

function judge(event: KeyedEvent, events: KeyedEvent[]): string {
  const earlier = events.filter(
    ({ idempotencyKey, sequence }) => idempotencyKey === event.idempotencyKey && sequence < event.sequence,
  );
  if (earlier.some((one) => one.kind === event.kind && one.contentDigest === event.contentDigest)) return "duplicate";
  return earlier.length > 0 ? "reuse" : "first";
}

function allLists<Item>(items: readonly Item[], length: number): Item[][] {
  if (length === 0) return [[]];
  return allLists(items, length - 1).flatMap((list) => items.map((item) => [...list, item]));
}

function allOrders<Item>(items: readonly Item[]): Item[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, index) => allOrders(items.toSpliced(index, 1)).map((others) => [item, ...others]));
}

/** @param ends for each item but the last, whether a batch ends with it */
function cut<Item>(items: Item[], ends: boolean[]): Item[][] {
  const batches: Item[][] = [[]];
  for (const [index, item] of items.entries()) {
    batches.at(-1)?.push(item);
    if (ends[index]) batches.push([]);
  }
  return batches;
}

/** The simplest possible log of one booking. */
class Log {
  #rows: (KeyedEvent & { recorded: "first" | "reuse" | "duplicate" })[] = [];

  add(batch: KeyedEvent[]): void {
    const inOrder = batch.toSorted((a, b) => a.sequence - b.sequence);
    this.#record(
      inOrder,
      findRepeats(inOrder, (event) => this.#findUses(event)),
    );
  }

  recorded(id: string): string | undefined {
    return this.#rows.find((row) => row.id === id)?.recorded;
  }

  #findUses({ idempotencyKey, kind, contentDigest }: KeyedEvent): KeyUses {
    const counting = this.#rows.filter((row) => row.idempotencyKey === idempotencyKey && row.recorded !== "duplicate");
    const same = counting.find((row) => row.kind === kind && row.contentDigest === contentDigest);
    return { first: counting.find((row) => row.recorded === "first") ?? null, same: same ?? null };
  }

  #record(events: KeyedEvent[], { duplicates, displaced, reusing, reusingInLog }: Repeats): void {
    for (const row of this.#rows) {
      if (displaced.some(({ id }) => id === row.id)) row.recorded = "duplicate";
      if (reusingInLog.some(({ id }) => id === row.id)) row.recorded = "reuse";
    }
    for (const event of events) {
      const recorded = duplicates.has(event.id) ? "duplicate" : reusing.has(event.id) ? "reuse" : "first";
      this.#rows.push({ ...event, recorded });
    }
  }
}
