import { beforeEach, describe, expect, test, vi } from "vitest";
import { BookingQueues } from "./booking-queues.ts";
import { Breaker } from "./breaker.ts";
import type { Entry } from "./intake.ts";
import type { Handing, LookedUp } from "./look-up-delivery.ts";
import { Parking } from "./parking.ts";
import { PendingProgress } from "./pending-progress.ts";
import { type Task, Turns } from "./turns.ts";

const place = { lastId: 0, snapshotAfter: null };
const retry = { firstPauseMs: 1_000, longestPauseMs: 8_000, giveUpAfterMs: 3_000 };

beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0));

function start({ isOpen = false } = {}) {
  const queues = new BookingQueues();
  const turns = new Turns(queues, { isLatest: true });
  const [breaker, pending] = [new Breaker(8, { isOpen }), new PendingProgress(place)];
  const parking = new Parking({ breaker, pending, queues, turns, retry });
  const finish = vi.fn();
  /** An attempt of change 7 of a booking fails. Before the second one, the booking waited. */
  const park = (bookingId: string, { attempt = 1, isProbe = false, sinceId = null as number | null } = {}) => {
    const isRetry = attempt > 1;
    const task: Task = { bookingId, changeId: 7, isProbe, ...(!isRetry && { entry: { finish } as unknown as Entry }) };
    const found = { doneId: 3, waiting: isRetry ? {} : null } as LookedUp["found"];
    return parking.park(task, { found } as LookedUp, { change: { id: 7 }, attempt, sinceId } as Handing, "no");
  };
  const parkAll = (bookingIds: string) => [...bookingIds].map((bookingId) => park(bookingId));
  return { queues, turns, breaker, pending, parking, finish, park, parkAll, take: () => pending.take(place) };
}

function row(bookingId: string, attempts: number, pauseMs: number | null, sinceId: number | null = null) {
  return { bookingId, doneId: 3, waiting: { changeId: 7, sinceId, attempts, pauseMs, failure: "no" } };
}

const unopened = { isDead: false, hasOpenedBreaker: false, pauseMs: 0 };

describe("a booking whose delivery fails", () => {
  test("waits for its own time, and nothing else does", () => {
    const { park, take, finish } = start();
    expect(park("A")).toEqual(unopened);
    expect(finish).toHaveBeenCalledOnce();
    expect(take()).toEqual({ place, isWorking: false, breaker: null, rows: [row("A", 1, 1_000)] });
  });

  test("waits longer after each attempt, and is dead after the last", () => {
    const { park, take } = start();
    expect(park("A", { attempt: 2, sinceId: 5 })).toEqual(unopened);
    expect(take()?.rows).toEqual([row("A", 2, 2_000, 5)]);
    expect(park("A", { attempt: 3 })).toEqual({ ...unopened, isDead: true });
    expect(take()?.rows).toEqual([row("A", 3, null)]);
  });

  test("waits for no probe if the consumer has been found to work meanwhile", () => {
    const { park } = start();
    expect(park("A", { isProbe: true })).toEqual(unopened);
  });
});

describe("if the consumer seems to be down", () => {
  test("the bookings that have shown it get their attempts back, and can't have their turns before that is recorded", () => {
    const { parkAll, take, queues } = start();
    queues.begin("A");
    queues.add({ bookingId: "A", changeId: 9 } as Entry);
    expect(parkAll("ABCDE").at(-1)).toEqual({ isDead: false, hasOpenedBreaker: true, pauseMs: 1_000 });
    const { breaker, rows } = take() ?? {};
    expect(breaker).toEqual({ isOpen: true, probeInMs: 1_000 });
    expect(rows).toEqual([..."ABCDE"].map((bookingId) => row(bookingId, 0, 0)));
    expect([..."ABCD"].every((bookingId) => queues.isBusy(bookingId))).toBe(true);
    expect(queues.has("A", 9)).toBe(true);
  });

  test("an attempt that it took before is the end of those in a row", () => {
    const { parking, parkAll, take } = start();
    parkAll("ABCD");
    take();
    expect(parking.succeed()).toBe(false);
    expect(parkAll("EFGHI").map(({ hasOpenedBreaker }) => hasOpenedBreaker)).toEqual([
      ...[false, false, false, false],
      true,
    ]);
    expect(
      take()
        ?.rows.map(({ bookingId }) => bookingId)
        .join(""),
    ).toBe("EFGHI");
  });

  test("a booking gets its last attempt back, if its first was one of those in a row", () => {
    const { park, parkAll, take } = start();
    park("Z", { attempt: 2 });
    park("A");
    park("A", { attempt: 2 });
    parkAll("BCDE");
    expect(take()?.rows).toEqual([row("Z", 2, 2_000), row("A", 1, 0), ...[..."BCDE"].map((id) => row(id, 0, 0))]);
  });

  test("a booking that is being tried again keeps its attempt, and one that has just failed gets it back", () => {
    const { breaker, turns, queues, pending, parkAll, take } = start();
    parkAll("A");
    take();
    pending.recorded();
    turns.offer([..."AB"].map((bookingId) => ({ name: "", bookingId, changeId: 7, dueInMs: 0, arrivesSoon: false })));
    expect([turns.begin(breaker)?.bookingId, turns.begin(breaker)?.bookingId]).toEqual(["A", "B"]);
    parkAll("BCDE");
    expect(take()?.rows).toEqual([..."BCDE"].map((bookingId) => row(bookingId, 0, 0)));
    expect(queues.isBusy("B")).toBe(true);
  });

  test("a probe that fails costs no attempt, and the next one waits longer", () => {
    const { park, take } = start({ isOpen: true });
    const pauses = [1, 2, 3].map((attempt) => park("A", { isProbe: true, attempt }).pauseMs);
    expect(pauses).toEqual([1_000, 2_000, 2_000]);
    expect(take()).toMatchObject({ breaker: { isOpen: true, probeInMs: 2_000 }, rows: [row("A", 2, 0)] });
  });

  test("what was under way when that was noticed costs no attempt, and moves no probe", () => {
    const { park, take } = start({ isOpen: true });
    expect(park("A")).toEqual(unopened);
    expect(take()).toEqual({ place, isWorking: false, breaker: null, rows: [row("A", 0, 0)] });
  });
});

test("a success is recorded, and that the consumer is up again", () => {
  const { parking, take } = start({ isOpen: true });
  expect(parking.succeed()).toBe(true);
  expect(take()).toEqual({ place, isWorking: true, breaker: { isOpen: false, probeInMs: 0 }, rows: [] });
  expect(parking.succeed()).toBe(false);
  expect(take()).toEqual({ place, isWorking: true, breaker: null, rows: [] });
});
