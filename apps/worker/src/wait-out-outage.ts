import { setTimeout as sleep } from "node:timers/promises";
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
 */
export function createOutageGate(options: {
  probe: () => Promise<void>;
  onChange: (outage: Fault | null) => void;
  signal: AbortSignal;
}): OutageGate {
  const { probe, onChange, signal } = options;
  let outage: Fault | null = null;
  /** Settles when PostgreSQL is back, or the worker stops. */
  let recovery: Promise<void> | null = null;
  let probing: Promise<boolean> | null = null;

  function startOutage(error: unknown): void {
    if (recovery !== null) return;
    outage = describeFault(error);
    onChange(outage);
    recovery = recover().finally(() => {
      recovery = null;
    });
  }

  async function recover(): Promise<void> {
    for (let delayMs = firstDelayMs; !signal.aborted; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      await sleep(delayMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
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

  /** One for all who ask at the same time. */
  function isOut(): Promise<boolean> {
    probing ??= probe()
      .then(() => false)
      .catch((error: unknown) => {
        startOutage(error);
        return true;
      })
      .finally(() => {
        probing = null;
      });
    return probing;
  }

  return {
    async run(work) {
      for (;;) {
        if (recovery !== null) await orAborted(recovery, signal);
        signal.throwIfAborted();
        try {
          return await work();
        } catch (error) {
          if (error instanceof NotBegun) startOutage(error);
          else if (describeFault(error).isOfContent || !(await isOut())) throw error;
        }
      }
    },
    currentOutage: () => outage,
  };
}

async function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
