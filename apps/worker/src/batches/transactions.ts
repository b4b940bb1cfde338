import type { Outcome } from "@booking-events/bookings";
import type { GivenUpEvent } from "@booking-events/queue";
import type { Logger, Tracing } from "@booking-events/runtime";
import type { EventEnvelope } from "@booking-events/schema";
import { type DigestKey, settleAll } from "@booking-events/store";
import type { Pool } from "pg";
import type { ApplyMode, applyEvents } from "../apply/apply-events.ts";
import { traceBatch } from "../apply/trace-batches.ts";
import type { OutageGate } from "../outages/wait-out-outage.ts";
import type { WorkerMetrics } from "../watch/worker-metrics.ts";
import { readEnvelope, type UnreadEvent } from "./read-envelope.ts";
import type { AppliedEvent } from "./waiting-events.ts";

/** By the events' ids. Events without an outcome were left out: they must be applied with others of their booking only. */
export type Outcomes = ReadonlyMap<string, Outcome>;

export interface TransactionParts {
  pool: Pool;
  /** For the bookings of test partners. */
  testPool: Pool;
  outageGate: OutageGate;
  applyEvents: typeof applyEvents;
  digestKey: () => DigestKey;
  /** The id of the database that the events are for. */
  database: () => string;
  duplicateWindowMs: number;
  metrics: Pick<WorkerMetrics, "countWarning">;
  tracing: Tracing | undefined;
  logger: Logger;
}

/**
 * Applies events in transactions of PostgreSQL, and waits out its outages. Events of test partners are applied in
 * transactions of their own, where nothing else is visible.
 */
export class Transactions {
  readonly #parts: TransactionParts;

  constructor(parts: TransactionParts) {
    this.#parts = parts;
  }

  /**
   * Applies all of the events in one transaction, or none; or in one for test partners and one for the others. If only
   * one of these has failed, the other's events are applied once all the same when this is called again.
   */
  applyTogether(envelopes: EventEnvelope[], mode: ApplyMode): Promise<Outcomes> {
    const tests = envelopes.filter(isTest);
    const { outageGate } = this.#parts;
    if (tests.length === 0 || tests.length === envelopes.length)
      return outageGate.throughOutages(() => applyTraced(envelopes, mode, this.#parts));
    const others = envelopes.filter((envelope) => !isTest(envelope));
    return outageGate.throughOutages(async () => {
      const outcomes = await settleAll([applyTraced(others, mode, this.#parts), applyTraced(tests, mode, this.#parts)]);
      return new Map(outcomes.flatMap((some) => [...some]));
    });
  }

  /** When transactions could go on after an outage the last time, of `performance.now()`. */
  recoveredAtMs(): number {
    return this.#parts.outageGate.recoveredAtMs();
  }

  /**
   * Applies an event that may kill its worker, by itself. A trial ends when an outage begins: a worker that waits for
   * PostgreSQL may die for any reason.
   *
   * @throws InvalidEnvelope, LaterVersion; why the event could not be applied
   */
  applyInTrial(event: UnreadEvent, runTrial: GivenUpEvent["runTrial"]): Promise<AppliedEvent> {
    return this.#parts.outageGate.throughOutages(() => runTrial(() => applyAlone(event, this.#parts)));
  }
}

async function applyAlone({ text }: UnreadEvent, parts: TransactionParts): Promise<AppliedEvent> {
  const envelope = readEnvelope(text);
  const { eventId, partner, kind, sequence, test } = envelope;
  const outcome = (await applyTraced([envelope], { isAlone: true, waitsForLocks: true }, parts)).get(eventId);
  if (outcome === undefined) throw new Error("An event that is applied alone always has an outcome.");
  return { eventId, partner, kind, sequence, test, outcome };
}

function isTest({ test }: Pick<EventEnvelope, "test">): boolean {
  return test === true;
}

/** @param envelopes all of test partners, or none */
function applyTraced(envelopes: EventEnvelope[], mode: ApplyMode, parts: TransactionParts): Promise<Outcomes> {
  const { pool, testPool, digestKey, database, duplicateWindowMs, metrics, tracing, logger } = parts;
  const areTests = envelopes.some(isTest);
  return traceBatch(tracing, envelopes, (batch) =>
    parts.applyEvents(areTests ? testPool : pool, envelopes, {
      ...mode,
      digestKey: digestKey(),
      database: database(),
      duplicateWindowMs,
      onWarning(warning) {
        if (!areTests) metrics.countWarning(warning.code);
        logger.warn(warning, "event recorded with a warning");
      },
      batch,
    }),
  );
}
