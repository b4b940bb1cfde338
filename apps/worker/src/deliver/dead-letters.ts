import type { Outcome } from "@booking-events/bookings";
import { parseEnvelopeText } from "@booking-events/schema";
import {
  type DeadLetterToWrite,
  type DigestKey,
  findDeadLetter,
  inTransaction,
  type Queryable,
  recordIfErased,
  resolveDeadLetter,
  writeDeadLetter,
} from "@booking-events/store";
import type { Pool } from "pg";
import type { ProcessOptions } from "./process-delivery.ts";

export type DeadLetters = Pick<ProcessOptions, "writeDeadLetter" | "isDeadLetterClosed" | "closeDeadLetter">;

/** What processing a delivery does with dead letters, each in a transaction of its own. */
export function createDeadLetters(pool: Pool, digestKey: () => DigestKey): DeadLetters {
  return {
    writeDeadLetter: (letter) =>
      inTransaction(pool, async (client) => {
        // The dead letter would hold what an operator has erased.
        const outcome = await recordOfErased(client, digestKey(), letter);
        return outcome ?? writeDeadLetter(client, letter);
      }),
    isDeadLetterClosed: (eventId) =>
      inTransaction(pool, async (client) => (await findDeadLetter(client, eventId))?.resolvedAt != null),
    closeDeadLetter: (eventId, outcome) =>
      inTransaction(pool, (client) =>
        resolveDeadLetter(client, { eventId, resolvedBy: "worker", resolution: `replayed: ${outcome}` }),
      ),
  };
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
