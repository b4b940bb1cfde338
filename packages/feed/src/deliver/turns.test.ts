import { describe, expect, test } from "vitest";
import { BookingQueues } from "./booking-queues.ts";
import { Breaker } from "./breaker.ts";
import type { DueDelivery } from "./deliveries.ts";
import { type Task, Turns } from "./turns.ts";

function start({ concurrency = 8, isOpen = false, isLatest = false } = {}) {
  const queues = new BookingQueues();
  const breaker = new Breaker(concurrency, { isOpen });
  const turns = new Turns(queues, { isLatest });
  const begin = () => turns.begin(breaker);
  return {
    ...{ queues, breaker, turns, begin },
    /** Changes that are old, of a booking for each letter. */
    add(bookingIds: string): void {
      const stands = { standsForOthers: true, standsForEarlier: false };
      const place = { lastId: 0, snapshotAfter: null };
      for (const [index, bookingId] of [...bookingIds].entries())
        queues.add({
          ...{ bookingId, changeId: 100 + index, ...stands, place, atMs: Number.NEGATIVE_INFINITY, finish() {} },
        });
    },
    beginAll(): Task[] {
      const tasks: Task[] = [];
      for (let task = begin(); task !== undefined; task = begin()) tasks.push(task);
      return tasks;
    },
  };
}

/** Deliveries that wait, of a booking for each letter, in the order of their ids. */
function waitingOf(bookingIds: string, arrivesSoon = false): DueDelivery[] {
  return [...bookingIds].map((bookingId, index) => ({
    ...{ name: "test", bookingId, changeId: 1 + index, dueInMs: 0, arrivesSoon },
  }));
}

const bookingsOf = (tasks: Task[]) => tasks.map(({ bookingId }) => bookingId).join("");

describe("turns", () => {
  test("alternate between what waited and what is new, as many at a time as may be", () => {
    const { turns, add, beginAll } = start({ concurrency: 5 });
    turns.offer(waitingOf("abcd"));
    add("ABCD");
    const tasks = beginAll();
    expect(bookingsOf(tasks)).toBe("aAbBc");
    expect(tasks[0]).toEqual({ bookingId: "a", changeId: 1, isProbe: false });
    expect(tasks[1]).toMatchObject({ bookingId: "A", changeId: 100, isProbe: false, entry: { bookingId: "A" } });
    expect([turns.running, turns.isRunning("a"), turns.isRunning("d")]).toEqual([5, true, false]);
  });

  test("leave half of the slots to what has not failed, even if nothing new is there", () => {
    const { turns, add, beginAll } = start({ concurrency: 5 });
    turns.offer(waitingOf("abcde"));
    const tasks = beginAll();
    expect(bookingsOf(tasks)).toBe("abc");
    add("ABC");
    const fresh = beginAll();
    expect(bookingsOf(fresh)).toBe("AB");
    for (const task of fresh) turns.end(task);
    expect(bookingsOf(beginAll())).toBe("C");
    for (const task of tasks.slice(0, 1)) turns.end(task);
    expect(bookingsOf(beginAll())).toBe("d");
    expect(turns.isRunning("a")).toBe(false);
  });

  test("go to what is new if nothing waits", () => {
    const { add, beginAll } = start({ concurrency: 3 });
    add("ABCD");
    expect(bookingsOf(beginAll())).toBe("ABC");
  });

  test("come first for guests who arrive soon, then in the order of ids", () => {
    const { turns, beginAll } = start();
    turns.offer(waitingOf("ab").toReversed());
    turns.offer(waitingOf("cd", true).toReversed());
    expect(bookingsOf(beginAll())).toBe("cdab");
  });

  test("are one for each delivery that waits, however often it is offered, and none while the booking has one", () => {
    const { turns, queues, begin, beginAll } = start();
    expect(turns.offer(waitingOf("ab"))).toBe(true);
    expect(turns.offer(waitingOf("ab"))).toBe(false);
    expect(begin()?.bookingId).toBe("a");
    expect(queues.isBusy("a")).toBe(true);
    expect(turns.offer(waitingOf("a"))).toBe(false);
    queues.begin("b");
    expect(beginAll()).toEqual([]);
  });

  test.each([
    [true, 101],
    [false, 100],
  ])("go to the newest change of a booking only if that is wanted: %j", (isLatest, changeId) => {
    const { add, begin } = start({ isLatest });
    add("AA");
    expect(begin()?.changeId).toBe(changeId);
  });
});

describe("of a consumer that seems to be down", () => {
  function probe({ turns, queues, breaker, begin }: ReturnType<typeof start>, count: number): string {
    const tasks = Array.from({ length: count }, () => {
      const task = begin() as Task;
      expect(task.isProbe).toBe(true);
      expect(begin()).toBeUndefined();
      breaker.fail({ isProbe: true, hasFailedBefore: true });
      turns.end(task);
      queues.end(task.bookingId);
      return task;
    });
    return bookingsOf(tasks);
  }

  test("every fourth turn goes to what waited, each time to the next one, and the others to what is new", () => {
    const started = start({ isOpen: true });
    started.turns.offer(waitingOf("abcde"));
    started.add("ABCDEFGHI");
    expect(probe(started, 13)).toBe("aABCcDEFeGHId");
  });

  test("turns go to what waited if nothing new is there, and to what is new if nothing waits", () => {
    const started = start({ isOpen: true });
    started.turns.offer(waitingOf("ab"));
    expect(probe(started, 2)).toBe("ab");
    started.add("ABC");
    expect(probe(started, 3)).toBe("ABC");
    expect(started.begin()).toBeUndefined();
  });
});
