import {
  type DeadLetter,
  findDeadLetter,
  findProcessed,
  type Queryable,
  resolveDeadLetter,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";

export interface Discard {
  eventId: string;
  /** `applied`: another delivery of the event has been applied, and its letter is closed. `resolved`: it was closed already. */
  result: "discarded" | "applied" | "resolved";
  /** The outcome, or how the letter was closed. */
  detail: string;
}

/** Closes letters: as discarded, or as applied if another delivery of the event has been applied. */
export function discardDeadLetters(
  context: Context,
  letters: DeadLetter[],
  { reason, by }: { reason: string; by: string },
): Promise<Discard[]> {
  return withDatabase(context, async (pool) => {
    const discards: Discard[] = [];
    for (const { eventId } of letters) discards.push(await discardOne(pool, eventId, { reason, by }));
    return discards;
  });
}

async function discardOne(
  client: Queryable,
  eventId: string,
  { reason, by }: { reason: string; by: string },
): Promise<Discard> {
  const outcome = (await findProcessed(client, [eventId])).get(eventId);
  const resolution = outcome === undefined ? `discarded: ${reason}` : `applied meanwhile: ${outcome}`;
  if (!(await resolveDeadLetter(client, { eventId, resolvedBy: by, resolution }))) {
    const closed = await findDeadLetter(client, eventId);
    return { eventId, result: "resolved", detail: closed?.resolution ?? "deleted" };
  }
  return outcome === undefined
    ? { eventId, result: "discarded", detail: resolution }
    : { eventId, result: "applied", detail: outcome };
}
