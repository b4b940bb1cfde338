import type { Outcome } from "@booking-events/bookings";
import { parseEnvelopeText } from "@booking-events/schema";
import {
  closeLettersOfApplied,
  type DeadLetterToWrite,
  type DigestKey,
  findDeadLetter,
  inTransaction,
  type Queryable,
  recordIfErased,
  requireDatabase,
  resolveDeadLetter,
  writeDeadLetter,
} from "@booking-events/store";
import type { Pool } from "pg";
import type { OutageGate } from "../outages/wait-out-outage.ts";

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
    return this.#inTransaction(isTest, async (client) => (await findDeadLetter(client, eventId))?.resolvedAt != null);
  }

  async closeLetter(eventId: string, outcome: Outcome, isTest: boolean): Promise<void> {
    const resolution = { eventId, resolvedBy: "worker", resolution: `replayed: ${outcome}` };
    await this.#inTransaction(isTest, (client) => resolveDeadLetter(client, resolution));
  }

  async closeLettersOfApplied(): Promise<void> {
    await this.#inTransaction(false, closeLettersOfApplied);
    await this.#inTransaction(true, closeLettersOfApplied);
  }

  #inTransaction<Result>(isTest: boolean, work: (client: Queryable) => Promise<Result>): Promise<Result> {
    const { pool, testPool, outageGate, database } = this.#parts;
    return outageGate.throughOutages(() =>
      inTransaction(isTest ? testPool : pool, async (client) => {
        await requireDatabase(client, database());
        return work(client);
      }),
    );
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
