import type { Outcome } from "@booking-events/bookings";
import { createSlots, gatherPerTurn } from "@booking-events/runtime";
import { parseEnvelopeText } from "@booking-events/schema";
import {
  areLettersClosed,
  closeLettersOfApplied,
  type DeadLetterToWrite,
  type DigestKey,
  inTransaction,
  type Queryable,
  recordIfErased,
  requireDatabase,
  resolveDeadLetter,
  writeDeadLetter,
} from "@booking-events/store";
import type { Pool } from "pg";
import type { OutageGate } from "../outages/wait-out-outage.ts";

/**
 * Each takes a connection. All events that the worker holds may need one at the same time, for example when thousands
 * are replayed. If they took all connections of a pool, it would seem that PostgreSQL were unavailable.
 */
const maxTransactions = 2;

interface DeadLetterParts {
  pool: Pool;
  /** For the events of test partners. */
  testPool: Pool;
  outageGate: OutageGate;
  digestKey: () => DigestKey;
  /** Returns the id of the database that the events are for. */
  database: () => string;
}

/** What the worker does with dead letters, each in a transaction of its own. All methods wait out outages. */
export class DeadLetters {
  readonly #parts: DeadLetterParts;
  readonly #inSlot = { real: createSlots(maxTransactions), test: createSlots(maxTransactions) };
  readonly #isClosed = { real: this.#gatherClosed(false), test: this.#gatherClosed(true) };

  constructor(parts: DeadLetterParts) {
    this.#parts = parts;
  }

  /** @returns the event's outcome if it is in the log. Then no dead letter is written */
  writeLetter(letter: DeadLetterToWrite, isTest: boolean): Promise<Outcome | undefined> {
    return this.#inTransaction(isTest, async (client) => {
      // The dead letter would hold what an operator has erased.
      const outcome = await recordOfErased(client, this.#parts.digestKey(), letter);
      return outcome ?? writeDeadLetter(client, letter);
    });
  }

  /** Whether the event's dead letter is closed, for example because it was discarded after the replay began. */
  isLetterClosed(eventId: string, isTest: boolean): Promise<boolean> {
    return this.#isClosed[isTest ? "test" : "real"](eventId);
  }

  async closeLetter(eventId: string, outcome: Outcome, isTest: boolean): Promise<void> {
    const resolution = { eventId, resolvedBy: "worker", resolution: `replayed: ${outcome}` };
    await this.#inTransaction(isTest, (client) => resolveDeadLetter(client, resolution));
  }

  async closeLettersOfApplied(): Promise<void> {
    await this.#inTransaction(false, closeLettersOfApplied);
    await this.#inTransaction(true, closeLettersOfApplied);
  }

  #gatherClosed(isTest: boolean): (eventId: string) => Promise<boolean> {
    return gatherPerTurn((eventIds) => this.#inTransaction(isTest, (client) => areLettersClosed(client, eventIds)));
  }

  #inTransaction<Result>(isTest: boolean, work: (client: Queryable) => Promise<Result>): Promise<Result> {
    const { pool, testPool, outageGate, database } = this.#parts;
    const transact = () =>
      inTransaction(isTest ? testPool : pool, async (client) => {
        await requireDatabase(client, database());
        return work(client);
      });
    // A slot is taken through an outage. When the worker stops, those that wait for one then fail at once.
    return this.#inSlot[isTest ? "test" : "real"](() => outageGate.throughOutages(transact));
  }
}

/** @returns undefined unless the event's booking has been erased */
async function recordOfErased(
  client: Queryable,
  key: DigestKey,
  { referenceKind, reference, envelope }: DeadLetterToWrite,
): Promise<Outcome | undefined> {
  const parsed = parseEnvelopeText(envelope.toString());
  if (!parsed.success || referenceKind === null || reference === null) return undefined;
  const { eventId: id, partner, kind, sequence, receivedAt } = parsed.envelope;
  const event = { id, partner, kind, referenceKind, reference, sequence, receivedAt: new Date(receivedAt) };
  return (await recordIfErased(client, key, event)) ? "erased" : undefined;
}
