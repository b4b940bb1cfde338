import { once } from "node:events";
import { setTimeout as sleepByTimer } from "node:timers/promises";
import { FormerPrimary, NotBegun, OtherDatabase } from "@booking-events/store";
import { DatabaseError } from "pg";
import { classifyFault, type Fault } from "./classify-fault.ts";

const firstDelayMs = 100;
const longestDelayMs = 5_000;

/**
 * A connection to a PostgreSQL whose machine died may break only when its successor already takes writes. So the first
 * loss does not blame the work. An event that makes PostgreSQL close its connection does so again.
 */
const maxLostConnections = 1;

/** Rejects when the signal aborts. */
type Sleep = (delayMs: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>;

export interface OutageGateOptions {
  /** Resolves when PostgreSQL takes a write. */
  probe: () => Promise<void>;
  /** Called when an outage begins, and with null when it ends. */
  onChange: (outage: Fault | null) => void;
  /** Aborts when the worker stops. All work that waits is released then. */
  signal: AbortSignal;
  sleep?: Sleep;
}

/**
 * Decides by evidence whether PostgreSQL is unavailable, or the work itself fails. If a transaction could not begin, or
 * was on a server that is no longer the primary or has another database, PostgreSQL is unavailable. After any other
 * failure, a probe asks PostgreSQL to take a write that has nothing to do with the work. If it does, the work itself
 * failed. Work that lost its connection is tried once more before that.
 *
 * While PostgreSQL is unavailable, one probe at a time runs, with growing delays, and all work waits until a probe
 * succeeds. Work that fails by itself never makes other work wait.
 */
export class OutageGate {
  readonly #probe: () => Promise<void>;
  readonly #onChange: (outage: Fault | null) => void;
  readonly #signal: AbortSignal;
  readonly #sleep: Sleep;
  readonly #stopped: Promise<unknown>;
  #outage: Fault | null = null;
  #recoveredAtMs = Number.NEGATIVE_INFINITY;
  /** Settles when the outage ends or the worker stops. */
  #recovery: Promise<unknown> | null = null;
  #probing: Promise<boolean> | null = null;

  constructor({ probe, onChange, signal, sleep = sleepByTimer }: OutageGateOptions) {
    this.#probe = probe;
    this.#onChange = onChange;
    this.#signal = signal;
    this.#sleep = sleep;
    this.#stopped = once(signal, "abort");
  }

  /** The fault that the worker waits for; null: there is none. */
  currentOutage(): Fault | null {
    return this.#outage;
  }

  /** When work could go on after an outage or a lost connection the last time, of `performance.now()`. */
  recoveredAtMs(): number {
    return this.#recoveredAtMs;
  }

  /**
   * Runs `work`, and runs it again while PostgreSQL is unavailable.
   *
   * @throws what `work` throws although PostgreSQL takes writes; `signal.reason` if the signal aborts during the wait
   */
  async throughOutages<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let lostConnections = 0; ; ) {
      await this.#recovery;
      this.#signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (isOfServer(error)) this.#startOutage(error);
        else if (classifyFault(error).isOfContent) throw error;
        else if (await this.#takesWrites()) {
          if (!isConnectionLost(error) || lostConnections === maxLostConnections) throw error;
          lostConnections += 1;
          this.#recoveredAtMs = performance.now();
        }
      }
    }
  }

  /** Work that fails at the same time shares one probe. */
  #takesWrites(): Promise<boolean> {
    this.#probing ??= this.#probe()
      .then(() => true)
      .catch((error: unknown) => {
        this.#startOutage(error);
        return false;
      })
      .finally(() => {
        this.#probing = null;
      });
    return this.#probing;
  }

  #startOutage(error: unknown): void {
    if (this.#recovery !== null) return;
    this.#outage = classifyFault(error);
    this.#onChange(this.#outage);
    // A running probe can take long to fail. When the worker stops, nothing waits for that.
    this.#recovery = Promise.race([this.#stopped, this.#recover()]).finally(() => {
      this.#recovery = null;
    });
  }

  /** Resolves when the outage ends; rejects when the worker stops. */
  async #recover(): Promise<void> {
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, longestDelayMs)) {
      await this.#sleep(delayMs, undefined, { signal: this.#signal });
      try {
        await this.#probe();
        this.#outage = null;
        this.#recoveredAtMs = performance.now();
        this.#onChange(null);
        return;
      } catch (error) {
        this.#outage = classifyFault(error);
      }
    }
  }
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
    error instanceof OtherDatabase ||
    (error instanceof DatabaseError && error.code === readOnlyTransaction)
  );
}
