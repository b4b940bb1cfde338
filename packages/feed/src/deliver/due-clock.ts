import { setTimeout as sleep } from "node:timers/promises";

/** Waits for a time that may come nearer meanwhile. */
export class DueClock {
  /** By `performance.now()`. */
  #atMs: number;
  #waker = new AbortController();

  constructor(atMs: number) {
    this.#atMs = atMs;
  }

  /** Makes the time `pauseMs` from now, unless it is earlier. */
  comeBy(pauseMs: number): void {
    const atMs = performance.now() + pauseMs;
    if (atMs >= this.#atMs) return;
    this.#atMs = atMs;
    this.#waker.abort();
  }

  /** Ends when the time has come, or the signal aborts. From then on, none is set. */
  async wait(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && performance.now() < this.#atMs) {
      this.#waker = new AbortController();
      const pauseMs = Math.min(Math.max(this.#atMs - performance.now(), 0), longestTimerMs);
      await sleep(pauseMs, undefined, { signal: AbortSignal.any([signal, this.#waker.signal]) }).catch(() => {});
    }
    this.#atMs = Number.POSITIVE_INFINITY;
  }
}

const longestTimerMs = 60_000;
