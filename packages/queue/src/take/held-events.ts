import type { Job } from "bullmq";
import type { JobContent } from "../events/event-job.ts";
import type { FetchLimits } from "./fetch-events.ts";

export type HeldJob = Pick<Job<JobContent>, "id" | "token" | "data">;

export interface HoldLimits {
  concurrency: number;
  /** The maximum memory for the text of held events. Only the last event of a fetch may exceed it. */
  maxHeldBytes: number;
}

/** Why a consumer may take no events for a while: this host's clock is wrong, or they are for another database. */
export type HaltReason = "clock" | "database";

/** V8 stores a string with any character outside of Latin-1 in two bytes per character, otherwise in one. */
const bytesPerCharacter = 2;

/**
 * Tracks the events that a consumer has fetched and not finished, and its fetch in progress.
 *
 * A fetch may start while there is room. An event larger than the limit is fetched when no other is held.
 */
export class HeldEvents {
  #limits: HoldLimits;
  /** The jobs whose handler has not ended, with the bytes of their texts. */
  readonly #handled = new Map<HeldJob, number>();
  /** When each job was fetched, by this process's clock that is never set. */
  readonly #locked = new Map<HeldJob, number>();
  #heldBytes = 0;
  #fetches = 0;
  #isStopped = false;
  readonly #halts = new Set<HaltReason>();
  #isWakeDue = false;
  #waitingForRoom: (() => void)[] = [];
  #waitingForIdleness: (() => void)[] = [];

  constructor(limits: HoldLimits) {
    this.#limits = limits;
  }

  /** Changes the limits. Events that are held stay. */
  limitTo(limits: HoldLimits): void {
    this.#limits = limits;
    this.#wakeThisTurn();
  }

  /** Returns whether a fetch may start. */
  hasRoom(): boolean {
    const { maxEvents, maxBytes } = this.#room();
    return !this.#isStopped && this.#halts.size === 0 && maxEvents > 0 && maxBytes > 0;
  }

  /**
   * Resolves when a fetch may start, or when none will be allowed anymore. Events that end in one turn of the event
   * loop make room together.
   */
  waitForRoom(): Promise<void> {
    return new Promise((resolve) => {
      this.#waitingForRoom.push(resolve);
      this.#wakeThisTurn();
    });
  }

  /** Allows no fetches until it is called with false for each reason. Events that are held stay. */
  halt(reason: HaltReason, isHalted: boolean): void {
    if (isHalted) this.#halts.add(reason);
    else this.#halts.delete(reason);
    this.#wakeThisTurn();
  }

  /** Allows no further fetches. */
  stop(): void {
    this.#isStopped = true;
    this.#wakeThisTurn();
  }

  /** @param fetch receives how much it may bring, and passes it to `hold` before it resolves */
  async fetch<Answer>(fetch: (limits: FetchLimits) => Promise<Answer>): Promise<Answer> {
    this.#fetches += 1;
    try {
      return await fetch(this.#room());
    } finally {
      this.#fetches -= 1;
      this.#wakeThisTurn();
    }
  }

  hold(job: HeldJob): void {
    const bytes = bytesPerCharacter * job.data.text.length;
    this.#handled.set(job, bytes);
    this.#locked.set(job, performance.now());
    this.#heldBytes += bytes;
  }

  /** Call this when the job's handler has ended: its text is no longer needed, but its lock may be. */
  endHandling(job: HeldJob): void {
    this.#heldBytes -= this.#handled.get(job) ?? 0;
    if (this.#handled.delete(job)) this.#wakeThisTurn();
  }

  remove(job: HeldJob): void {
    if (this.#locked.delete(job)) this.#wakeThisTurn();
    this.endHandling(job);
  }

  /** The jobs that need their locks, in the order in which they were fetched. */
  locked(): Iterable<HeldJob> {
    return this.#locked.keys();
  }

  /** How long ago the first of them was fetched; 0 if there is none. */
  longestHeldMs(): number {
    const now = performance.now();
    const [fetchedAt = now] = this.#locked.values();
    return now - fetchedAt;
  }

  /** Resolves when no job is being fetched or handled. This is certain to happen after {@link stop}. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#waitingForIdleness.push(resolve);
      this.#wakeThisTurn();
    });
  }

  #room(): FetchLimits {
    return {
      maxEvents: Math.max(this.#limits.concurrency - this.#locked.size, 0),
      maxBytes: Math.max(this.#limits.maxHeldBytes - this.#heldBytes, 0),
    };
  }

  #wakeThisTurn(): void {
    if (this.#isWakeDue || this.#waitingForRoom.length + this.#waitingForIdleness.length === 0) return;
    this.#isWakeDue = true;
    setImmediate(() => this.#wake());
  }

  #wake(): void {
    this.#isWakeDue = false;
    if (this.#isStopped || this.hasRoom()) for (const resolve of this.#waitingForRoom.splice(0)) resolve();
    if (this.#fetches === 0 && this.#handled.size === 0)
      for (const resolve of this.#waitingForIdleness.splice(0)) resolve();
  }
}
