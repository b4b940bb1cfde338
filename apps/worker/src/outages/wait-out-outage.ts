import { once } from "node:events";
import { setTimeout as sleepByTimer } from "node:timers/promises";
import { FormerPrimary, NotBegun } from "@booking-events/store";
import { DatabaseError } from "pg";
import { describeFault, type Fault } from "./describe-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;

/**
 * A connection to a PostgreSQL whose machine died may break only when its successor already takes writes. So the first
 * loss does not blame the work. An event that makes PostgreSQL close its connection does so again.
 */
const maxLostConnections = 1;

export interface OutageGate {
  /**
   * Runs `work`, and runs it again while PostgreSQL is unavailable.
   *
   * @throws what `work` throws although PostgreSQL takes writes; `signal.reason` if the signal aborts during the wait
   */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** The fault that the worker waits for; null: there is none. */
  currentOutage(): Fault | null;
}

/**
 * Decides by evidence whether PostgreSQL is unavailable, or the work itself fails. If a transaction could not begin, or
 * was on a server that is no longer the primary, PostgreSQL is unavailable. After any other failure, a probe asks
 * PostgreSQL to take a write that has nothing to do with the work. If it does, the work itself failed. Work that lost its
 * connection is tried once more before that.
 *
 * While PostgreSQL is unavailable, one probe at a time runs, with growing delays, and all work waits until a probe
 * succeeds. Work that fails by itself never makes other work wait.
 *
 * @param options.probe resolves when PostgreSQL takes a write
 * @param options.onChange called when an outage begins, and with null when it ends
 * @param options.signal aborts when the worker stops. All work that waits is released then
 * @param options.sleep rejects when the signal aborts
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
  /** Settles when the outage ends or the worker stops. */
  let recovery: Promise<unknown> | null = null;
  let probing: Promise<boolean> | null = null;

  function startOutage(error: unknown): void {
    if (recovery !== null) return;
    outage = describeFault(error);
    onChange(outage);
    // A running probe can take long to fail. When the worker stops, nothing waits for that.
    recovery = Promise.race([stopped, recover()]).finally(() => {
      recovery = null;
    });
  }

  /** Resolves when the outage ends; rejects when the worker stops. */
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

  /** Work that fails at the same time shares one probe. */
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
      for (let lostConnections = 0; ; ) {
        await recovery;
        signal.throwIfAborted();
        try {
          return await work();
        } catch (error) {
          if (isOfServer(error)) startOutage(error);
          else if (describeFault(error).isOfContent) throw error;
          else if (await takesWrites()) {
            if (!isConnectionLost(error) || lostConnections === maxLostConnections) throw error;
            lostConnections += 1;
          }
        }
      }
    },
    currentOutage: () => outage,
  };
}

/** What pg and the operating system say. A PostgreSQL that ends a connection in good order gives an SQLSTATE. */
function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof DatabaseError) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === "ECONNRESET" || code === "EPIPE" || error.message.startsWith("Connection terminated");
}

const readOnlyTransaction = "25006";

/** After a failover, a probe succeeds on the new primary while work still fails on the former one. */
function isOfServer(error: unknown): boolean {
  return (
    error instanceof NotBegun ||
    error instanceof FormerPrimary ||
    (error instanceof DatabaseError && error.code === readOnlyTransaction)
  );
}
