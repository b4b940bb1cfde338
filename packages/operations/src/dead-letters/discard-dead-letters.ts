import {
  type DeadLetter,
  findDeadLetter,
  findProcessed,
  type Queryable,
  resolveDeadLetter,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { stopIfCancelled } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { describeEvents } from "./find-letters.ts";

export interface Discard {
  eventId: string;
  /** `applied`: another delivery of the event has been applied, and its letter is closed. `resolved`: it was closed already. */
  result: "discarded" | "applied" | "resolved";
  /** The outcome, or how the letter was closed. */
  detail: string;
}

/** Closes letters: as discarded, or as applied if another delivery of the event has been applied. */
export function discardDeadLetters(
  context: ActingContext,
  letters: DeadLetter[],
  {
    reason,
    count,
    signal,
  }: {
    reason: string;
    /** Called for each letter, once it is closed. */
    count?: (discard: Discard) => void;
    /** Ends the work. What was discarded until then stays so. */
    signal?: AbortSignal | undefined;
  },
): Promise<Discard[]> {
  const action = { command: "dead-letters discard", arguments: describeEvents(letters) };
  return recordAction(context, action, (record) =>
    withDatabase(context, async (pool) => {
      const did = { discarded: 0 };
      record.did = did;
      const discards: Discard[] = [];
      for (const { eventId } of letters) {
        stopIfCancelled(signal);
        const discard = await discardOne(pool, eventId, { reason, by: context.by });
        discards.push(discard);
        if (discard.result === "discarded") did.discarded += 1;
        count?.(discard);
      }
      return discards;
    }),
  );
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
