import type { Job } from "bullmq";
import type { JobContent } from "./event-job.ts";

export type HeldJob = Pick<Job<JobContent>, "id" | "token" | "processedOn" | "data">;

/**
 * What one process has fetched and not yet come to an end with, and what is being fetched.
 *
 * A fetch may begin while there is room. It reserves what it is expected to bring, so that the limit is exceeded by one
 * event for each fetch under way at most, and by nothing in general. An event that is larger than the limit gets
 * through when nothing else is held.
 */
export interface HeldEvents {
  /** Whether a fetch may begin. */
  isOpen(): boolean;
  /** Resolves when a fetch may begin, or no other ever will. */
  whenOpen(): Promise<void>;
  /** No other fetch begins. */
  stop(): void;
  fetchOne<Answer>(fetch: () => Promise<Answer>): Promise<Answer>;
  /** @param fetch gets how many bytes it may bring: it may exceed them by one event, and brings none if they are 0 */
  fetchSome<Answer>(fetch: (maxBytes: number) => Promise<Answer>): Promise<Answer>;
  /** To be called within the turn of the event loop in which a fetch is answered. */
  hold(job: HeldJob): void;
  /** Its handler has come to an end, so that its text is not needed any more; its lock may be. */
  settle(job: HeldJob): void;
  letGo(job: HeldJob): void;
  /** Those that need their locks, in the order in which they came. */
  locked(): Iterable<HeldJob>;
  /** Resolves when nothing is being fetched or handled; after {@link stop}, that comes. */
  whenSettled(): Promise<void>;
}

/** V8 keeps a string with one character outside of Latin-1 in two bytes for each character, else in one. */
const bytesPerCharacter = 2;
/** What ingest takes at most, 64 KiB, as text. Only what an operator puts back is larger, or a higher limit lets in. */
const expectedEventBytes = bytesPerCharacter * 65_536;
/**
 * How much of the room one fetch of several may use up. Many are begun within one turn of the event loop, and the last
 * one must find room too: of 64 MiB, the sixtieth gets 13 KiB.
 */
const shareOfRoom = 0.1;

export function createHeldEvents({ maxBytes }: { maxBytes: number }): HeldEvents {
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
      // What came is held by then.
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
    isOpen: () => room() > 0,
    whenOpen: () => new Promise((resolve) => (isStopped || room() > 0 ? resolve() : waiting.open.push(resolve))),
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
    letGo(job) {
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
