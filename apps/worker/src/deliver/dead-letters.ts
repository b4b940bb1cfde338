import { findDeadLetter, inTransaction, resolveDeadLetter, writeDeadLetter } from "@booking-events/store";
import type { Pool } from "pg";
import type { ProcessOptions } from "./process-delivery.ts";

export type DeadLetters = Pick<ProcessOptions, "writeDeadLetter" | "isDeadLetterClosed" | "closeDeadLetter">;

/** What processing a delivery does with dead letters, each in a transaction of its own. */
export function createDeadLetters(pool: Pool): DeadLetters {
  return {
    writeDeadLetter: (letter) => inTransaction(pool, (client) => writeDeadLetter(client, letter)),
    isDeadLetterClosed: (eventId) =>
      inTransaction(pool, async (client) => (await findDeadLetter(client, eventId))?.resolvedAt != null),
    closeDeadLetter: (eventId, outcome) =>
      inTransaction(pool, (client) =>
        resolveDeadLetter(client, { eventId, resolvedBy: "worker", resolution: `replayed: ${outcome}` }),
      ),
  };
}
