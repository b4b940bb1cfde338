import type { Job } from "bullmq";
import type { JobContent } from "./event-job.ts";

export type HeldJob = Pick<Job<JobContent>, "id" | "token" | "processedOn" | "data">;

/**
 * Tracks the events that a process has fetched and not finished, and the fetches in progress.
 *
 * A fetch may start while there is room. It reserves the size that it is expected to bring, so the limit is exceeded by
 * at most one event for each fetch in progress, and normally not at all. An event larger than the limit is fetched when
 * no other is held.
 */
export interface HeldEvents {
  /** Changes the limit. Events that are held stay. */
  limitTo(maxBytes: number): void;
  /** Returns whether a fetch may start. */
  hasRoom(): boolean;
  /** Resolves when a fetch may start, or when none will be allowed anymore. */
  waitForRoom(): Promise<void>;
  /** Allows no further fetches. */
  stop(): void;
  fetchOne<Answer>(fetch: () => Promise<Answer>): Promise<Answer>;
  /**
   * @param fetch receives the number of bytes that it may bring. It may exceed them by one event, and brings none if
   *   they are 0
   */
  fetchSome<Answer>(fetch: (maxBytes: number) => Promise<Answer>): Promise<Answer>;
  /** Must be called in the turn of the event loop in which the fetch is answered. */
  hold(job: HeldJob): void;
  /** Call this when the job's handler has ended: its text is no longer needed, but its lock may be. */
  settle(job: HeldJob): void;
  remove(job: HeldJob): void;
  /** The jobs that need their locks, in the order in which they were fetched. */
  locked(): Iterable<HeldJob>;
  /** Resolves when no job is being fetched or handled. This is certain to happen after {@link stop}. */
  whenSettled(): Promise<void>;
}

/** V8 stores a string with any character outside of Latin-1 in two bytes per character, otherwise in one. */
const bytesPerCharacter = 2;
/**
 * The size of the largest body that ingest accepts by default, 64 KiB, as text. Only events that an operator puts back,
 * or a higher limit, can exceed it.
 */
const expectedEventBytes = bytesPerCharacter * 65_536;
/**
 * The share of the room that one fetch of several events may use. Many fetches start in one turn of the event loop, and
 * the last one must find room too: of 64 MiB, the sixtieth gets 13 KiB.
 */
const shareOfRoom = 0.1;

export function createHeldEvents(limit: { maxBytes: number }): HeldEvents {
  let { maxBytes } = limit;
  const unsettled = new Map<HeldJob, number>();
  const locked = new Set<HeldJob>();
  let heldBytes = 0;
  let reservedBytes = 0;
  let fetches = 0;
  let isStopped = false;
  const waiting = { open: [] as (() => void)[], settled: [] as (() => void)[] };

  const room = () => (isStopped ? 0 : Math.max(maxBytes - heldBytes - reservedBytes, 0));

  function wake(): void {
    if (isStopped || room() > 0) for (const resolve of waiting.open.splice(0)) resolve();
    if (fetches === 0 && unsettled.size === 0) for (const resolve of waiting.settled.splice(0)) resolve();
  }

  async function fetch<Answer>(bytes: number, work: () => Promise<Answer>): Promise<Answer> {
    fetches += 1;
    reservedBytes += bytes;
    try {
      return await work();
    } finally {
      // The fetched events have been passed to hold() by then.
      setImmediate(() => {
        fetches -= 1;
        reservedBytes -= bytes;
        wake();
      });
    }
  }

  function settle(job: HeldJob): void {
    heldBytes -= unsettled.get(job) ?? 0;
    if (unsettled.delete(job)) wake();
  }

  return {
    limitTo(bytes) {
      maxBytes = bytes;
      wake();
    },
    hasRoom: () => room() > 0,
    waitForRoom: () => new Promise((resolve) => (isStopped || room() > 0 ? resolve() : waiting.open.push(resolve))),
    stop() {
      isStopped = true;
      wake();
    },
    fetchOne: (work) => fetch(expectedEventBytes, work),
    fetchSome(work) {
      const bytes = Math.ceil(room() * shareOfRoom);
      return fetch(bytes, () => work(bytes));
    },
    hold(job) {
      const bytes = bytesPerCharacter * job.data.text.length;
      unsettled.set(job, bytes);
      locked.add(job);
      heldBytes += bytes;
    },
    settle,
    remove(job) {
      locked.delete(job);
      settle(job);
    },
    locked: () => locked,
    whenSettled: () =>
      new Promise((resolve) => {
        waiting.settled.push(resolve);
        wake();
      }),
  };
}
