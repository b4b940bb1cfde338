import { once } from "node:events";
import { setTimeout as sleepByTimer } from "node:timers/promises";
import { NotBegun } from "@booking-events/store";
import { describeFault, type Fault } from "./describe-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;

/** The database as the last attempts to use it have shown it. */
export interface OutageGate {
  /**
   * Runs `work`, and runs it again for as long as PostgreSQL is out.
   *
   * @throws what `work` throws although PostgreSQL takes writes; `signal.reason` when the signal aborts while it waits
   */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** The fault that keeps the worker waiting; null: none. */
  currentOutage(): Fault | null;
}

/**
 * Decides by evidence whether PostgreSQL is out, or a piece of work fails on it by itself. What fails before its
 * transaction began, says that PostgreSQL is out. After any other failure PostgreSQL is asked to take a write that has
 * nothing to do with the work: if it does, the failure is the work's own.
 *
 * While PostgreSQL is out, one probe at a time tries after growing delays, and all others wait for its success. So no
 * work that fails by itself can keep others waiting.
 *
 * @param options.probe resolves when PostgreSQL takes a write
 * @param options.onChange told once when PostgreSQL goes out, and once, with null, when it is back
 * @param options.signal aborts when the worker stops: whoever waits is released
 * @param options.sleep rejects at once when the signal aborts
 */
export function createOutageGate(options: {
  probe: () => Promise<void>;
  onChange: (outage: Fault | null) => void;
  signal: AbortSignal;
  sleep?: (delayMs: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>;
}): OutageGate {
  const { probe, onChange, signal, sleep = sleepByTimer } = options;
  const stopped = once(signal, "abort");
  let outage: Fault | null = null;
  /** Settles when PostgreSQL is back, or the worker stops. */
  let recovery: Promise<unknown> | null = null;
  let probing: Promise<boolean> | null = null;

  function startOutage(error: unknown): void {
    if (recovery !== null) return;
    outage = describeFault(error);
    onChange(outage);
    // A probe that is under way can take long to fail, and nobody waits for that when the worker stops.
    recovery = Promise.race([stopped, recover()]).finally(() => {
      recovery = null;
    });
  }

  /** Ends when PostgreSQL is back; fails when the worker stops. */
  async function recover(): Promise<void> {
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      await sleep(delayMs, undefined, { signal });
      try {
        await probe();
        outage = null;
        onChange(null);
        return;
      } catch (error) {
        outage = describeFault(error);
      }
    }
  }

  /** Asked once for all who want to know at the same time. */
  function takesWrites(): Promise<boolean> {
    probing ??= probe()
      .then(() => true)
      .catch((error: unknown) => {
        startOutage(error);
        return false;
      })
      .finally(() => {
        probing = null;
      });
    return probing;
  }

  return {
    async run(work) {
      for (;;) {
        await recovery;
        signal.throwIfAborted();
        try {
          return await work();
        } catch (error) {
          if (error instanceof NotBegun) startOutage(error);
          else if (describeFault(error).isOfContent || (await takesWrites())) throw error;
        }
      }
    },
    currentOutage: () => outage,
  };
}
