import { describe, expect, test } from "vitest";
import { comparePlaces, type KeyedEvent, type KeySettlement, type KeyUses, settleKeys } from "./settle-keys.ts";

const tellings = [
  { kind: "create", contentDigest: "A", idempotencyKey: "k1" },
  { kind: "create", contentDigest: "B", idempotencyKey: "k1" },
  { kind: "update", contentDigest: "A", idempotencyKey: "k1" },
  { kind: "create", contentDigest: "A", idempotencyKey: "k2" },
] as const;
/** As many as make every case of two of a telling around one of another, in any order. */
const eventCount = 4;

test("what counts and what is a reuse does not depend on the order in which events arrive, nor on their batches", () => {
  for (const history of allLists(tellings, eventCount)) {
    const events = history.map((telling, index) => ({ ...telling, id: `e${index}`, sequence: index }));
    const expected = events.map((event) => judge(event, events)).join();
    for (const arriving of allOrders(events)) {
      for (const ends of allLists([true, false], eventCount - 1)) {
        const log = new Log();
        for (const batch of cut(arriving, ends)) log.settle(batch);
        const recorded = events.map(({ id }) => log.recorded(id)).join();
        // There are fifty thousand cases, and an assertion takes longer than a case.
        if (recorded !== expected) expect({ arriving, ends, recorded }).toEqual({ arriving, ends, recorded: expected });
      }
    }
  }
});

describe("what is settled names the events that it concerns", () => {
  const place = (sequence: number) => ({ id: `e${sequence}`, sequence });
  const event = (sequence: number) => ({ ...place(sequence), ...tellings[0] });
  const other = { ...place(4), ...tellings[1] };
  const none = { duplicates: new Map(), displaced: [], reusing: new Set(), reusingInLog: [] };

  test("of several that are one, the one that counts", () => {
    const settlement = settleKeys([event(2), event(3)], () => ({ first: null, same: null }));
    expect(settlement).toEqual({ ...none, duplicates: new Map([["e3", "e2"]]) });
  });

  test("the one in the log, if that was received first", () => {
    const uses = { first: { ...place(1), kind: "create" }, same: place(1) } as const;
    const duplicates = new Map([
      ["e2", "e1"],
      ["e3", "e1"],
    ]);
    expect(settleKeys([event(2), event(3)], () => uses)).toEqual({ ...none, duplicates });
  });

  test("the one in the log that counts no longer", () => {
    const uses = { first: { ...place(5), kind: "create" }, same: place(5) } as const;
    const displaced = [{ ...place(5), duplicateOf: "e2" }];
    expect(settleKeys([event(2)], () => uses)).toEqual({ ...none, displaced });
  });

  test("the one in the log that has reused the key, with its kind", () => {
    const uses = { first: { ...place(5), kind: "delete" }, same: null } as const;
    const settled = settleKeys([event(2), other], () => uses);
    expect(settled).toEqual({ ...none, reusing: new Set(["e4"]), reusingInLog: [{ id: "e5", kind: "delete" }] });
  });

  test("none without a key, of which the log is not even asked", () => {
    const unasked = () => {
      throw new Error("There is no key to ask about.");
    };
    const keyless = [event(1), event(2)].map((keyed) => ({ ...keyed, idempotencyKey: null }));
    expect(settleKeys(keyless, unasked)).toEqual(none);
  });
});

test("places are in the order of their sequences, and of their ids where these are the same", () => {
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

/** @param ends of each item but the last, whether a batch ends with it */
function cut<Item>(items: Item[], ends: boolean[]): Item[][] {
  const batches: Item[][] = [[]];
  for (const [index, item] of items.entries()) {
    batches.at(-1)?.push(item);
    if (ends[index]) batches.push([]);
  }
  return batches;
}

/** A log of one booking, as plain as it can be. */
class Log {
  #rows: (KeyedEvent & { recorded: "first" | "reuse" | "duplicate" })[] = [];

  settle(batch: KeyedEvent[]): void {
    const inOrder = batch.toSorted((a, b) => a.sequence - b.sequence);
    this.#record(
      inOrder,
      settleKeys(inOrder, (event) => this.#findUses(event)),
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

  #record(events: KeyedEvent[], { duplicates, displaced, reusing, reusingInLog }: KeySettlement): void {
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
