import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "./classify-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;

/** The database as the last attempts to use it have shown it. */
export interface OutageGate {
  /**
   * Runs `work`, and runs it again for as long as it fails by the database's fault. While the database is out, only
   * one caller at a time tries, after growing delays; the others wait for its success.
   *
   * @throws what `work` throws by any other fault; `signal.reason` when the signal aborts while it waits
   */
  run<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** The fault that keeps the worker waiting; null: none. */
  currentOutage(): Fault | null;
}

/**
 * @param options.classify says whose fault an error is
 * @param options.onChange told once when the database goes out, and once, with null, when it is back
 */
export function createOutageGate(options: {
  classify: (error: unknown) => Fault;
  onChange: (outage: Fault | null) => void;
}): OutageGate {
  let outage: Fault | null = null;
  let failures = 0;
  /** Settles when whoever tries now has had an answer. */
  let trial: Promise<void> | null = null;

  function setOutage(fault: Fault | null): void {
    const hasChanged = (outage === null) !== (fault === null);
    outage = fault;
    failures = fault === null ? 0 : failures + 1;
    if (hasChanged) options.onChange(fault);
  }

  /** @returns the result, or undefined when the database is out */
  async function attempt<Result>(work: () => Promise<Result>): Promise<{ result: Result } | undefined> {
    try {
      const result = await work();
      setOutage(null);
      return { result };
    } catch (error) {
      const fault = options.classify(error);
      if (fault.who === "outage") {
        setOutage(fault);
        return undefined;
      }
      // The database answered, if only to refuse this event.
      setOutage(null);
      throw error;
    }
  }

  async function attemptAlone<Result>(
    work: () => Promise<Result>,
    signal: AbortSignal,
  ): Promise<{ result: Result } | undefined> {
    const { promise, resolve } = Promise.withResolvers<void>();
    trial = promise;
    try {
      await orAborted(sleep(Math.min(firstDelayMs * 2 ** (failures - 1), longestDelayMs)), signal);
      return await attempt(work);
    } finally {
      trial = null;
      resolve();
    }
  }

  return {
    async run(work, signal) {
      for (;;) {
        signal.throwIfAborted();
        if (trial !== null) {
          await orAborted(trial, signal);
          continue;
        }
        const done = outage === null ? await attempt(work) : await attemptAlone(work, signal);
        if (done !== undefined) return done.result;
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
