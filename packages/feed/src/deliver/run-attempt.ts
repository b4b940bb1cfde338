import type { Queryable } from "@booking-events/store";
import type pg from "pg";
import { nameError } from "../logger.ts";
import type { DeliveryContext } from "./delivery.ts";
import { RetryAfter, StopDelivering } from "./errors.ts";
import { LazyTransaction } from "./lazy-transaction.ts";

/** How an attempt has ended. */
export type Outcome =
  | { kind: "done"; isRecorded: boolean }
  | { kind: "failed" | "timeout"; failure: string; error: unknown }
  | { kind: "retry-after"; pauseMs: number }
  | { kind: "stopped"; error: StopDelivering }
  /** The process stops, or has lost PostgreSQL or the lease. Whether the handler has done its work is not known. */
  | { kind: "interrupted" };

export interface AttemptOptions {
  pool: pg.Pool;
  timeoutMs: number;
  /** The process stops, or has lost the lease. */
  signal: AbortSignal;
  /** Adds to the handler's transaction that the delivery is done, unless another process has the lease. */
  record: (client: Queryable) => Promise<boolean>;
}

/**
 * Runs a handler once. Never throws. A handler that goes on after its time loses its transaction, and may run beside its
 * next attempt.
 */
export async function runAttempt(
  handle: (context: DeliveryContext) => Promise<void>,
  { pool, timeoutMs, signal, record }: AttemptOptions,
): Promise<Outcome> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(new Error("The attempt took too long.")), timeoutMs);
  const limit = AbortSignal.any([signal, timeout.signal]);
  const transaction = new LazyTransaction(pool, timeoutMs);
  try {
    await orAborted(async () => handle({ client: transaction.client, signal: limit }), limit);
    const end = await transaction.commit(record);
    if (end !== "refused") return { kind: "done", isRecorded: end === "committed" };
    await transaction.rollBack();
    return { kind: "interrupted" };
  } catch (error) {
    const wasBroken = transaction.isBroken;
    await transaction.rollBack();
    if (signal.aborted || wasBroken) return { kind: "interrupted" };
    if (timeout.signal.aborted) return { kind: "timeout", failure: "timeout", error };
    if (error instanceof RetryAfter) return { kind: "retry-after", pauseMs: error.pauseMs };
    if (error instanceof StopDelivering) return { kind: "stopped", error };
    return { kind: "failed", failure: classOf(error), error };
  } finally {
    clearTimeout(timer);
  }
}

async function orAborted(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
  });
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Error codes and names are chosen by whoever throws, so they are bounded: they go to the database and into metrics. */
function classOf(error: unknown): string {
  const name = nameError(error);
  return /^[\w.-]{1,60}$/.test(name) ? name : "error";
}
