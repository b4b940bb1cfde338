import type { Job } from "bullmq";
import type { JobContent } from "../events/event-job.ts";
import type { FetchLimits } from "./fetch-events.ts";

export type HeldJob = Pick<Job<JobContent>, "id" | "token" | "processedOn" | "data">;

/** How much a consumer may hold. */
export interface HoldLimits {
  /** The maximum number of events held. */
  concurrency: number;
  /** The maximum memory for the text of held events. Only the last event of a fetch may exceed it. */
  maxHeldBytes: number;
}

/**
 * Tracks the events that a consumer has fetched and not finished, and its fetch in progress.
 *
 * A fetch may start while there is room. An event larger than the limit is fetched when no other is held.
 */
export interface HeldEvents {
  /** Changes the limits. Events that are held stay. */
  limitTo(limits: HoldLimits): void;
  /** Returns whether a fetch may start. */
  hasRoom(): boolean;
  /**
   * Resolves when a fetch may start, or when none will be allowed anymore. Events that end in one turn of the event
   * loop make room together.
   */
  waitForRoom(): Promise<void>;
  /** Allows no further fetches. */
  stop(): void;
  /** @param fetch receives how much it may bring, and passes it to `hold` before it resolves */
  fetch<Answer>(fetch: (limits: FetchLimits) => Promise<Answer>): Promise<Answer>;
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

export function createHeldEvents(initialLimits: HoldLimits): HeldEvents {
  let limits = initialLimits;
  const unsettled = new Map<HeldJob, number>();
  const locked = new Set<HeldJob>();
  let heldBytes = 0;
  let fetches = 0;
  let isStopped = false;
  let isWakeDue = false;
  const waiting = { open: [] as (() => void)[], settled: [] as (() => void)[] };

  const room = (): FetchLimits => ({
    maxEvents: Math.max(limits.concurrency - locked.size, 0),
    maxBytes: Math.max(limits.maxHeldBytes - heldBytes, 0),
  });

  function hasRoom(): boolean {
    const { maxEvents, maxBytes } = room();
    return !isStopped && maxEvents > 0 && maxBytes > 0;
  }

  function wakeThisTurn(): void {
    if (isWakeDue || waiting.open.length + waiting.settled.length === 0) return;
    isWakeDue = true;
    setImmediate(wake);
  }

  function wake(): void {
    isWakeDue = false;
    if (isStopped || hasRoom()) for (const resolve of waiting.open.splice(0)) resolve();
    if (fetches === 0 && unsettled.size === 0) for (const resolve of waiting.settled.splice(0)) resolve();
  }

  function settle(job: HeldJob): void {
    heldBytes -= unsettled.get(job) ?? 0;
    if (unsettled.delete(job)) wakeThisTurn();
  }

  return {
    limitTo(newLimits) {
      limits = newLimits;
      wakeThisTurn();
    },
    hasRoom,
    waitForRoom: () =>
      new Promise((resolve) => {
        waiting.open.push(resolve);
        wakeThisTurn();
      }),
    stop() {
      isStopped = true;
      wakeThisTurn();
    },
    async fetch(work) {
      fetches += 1;
      try {
        return await work(room());
      } finally {
        fetches -= 1;
        wakeThisTurn();
      }
    },
    hold(job) {
      const bytes = bytesPerCharacter * job.data.text.length;
      unsettled.set(job, bytes);
      locked.add(job);
      heldBytes += bytes;
    },
    settle,
    remove(job) {
      if (locked.delete(job)) wakeThisTurn();
      settle(job);
    },
    locked: () => locked,
    whenSettled: () =>
      new Promise((resolve) => {
        waiting.settled.push(resolve);
        wakeThisTurn();
      }),
  };
}
