import type { ServerResponse } from "node:http";
import { Refusal } from "@booking-events/http";
import { answers, lookupAnswers } from "@booking-events/schema";

/** Lists that one process compares at once. Each takes up to 100 MiB and a connection to PostgreSQL. */
export const maxReconciliations = 2;

/**
 * Takes a slot until the response is closed.
 *
 * @throws Refusal instead of waiting: a waiting request would hold its connection
 */
export type TakeSlot = (partner: string, response: ServerResponse) => void;

/** Each partner has one slot, so the lists of one never keep all others out. */
export function createSlots(maxAtOnce = maxReconciliations): TakeSlot {
  const busy = new Set<string>();
  return (partner, response) => {
    if (busy.has(partner)) throw new Refusal(lookupAnswers.alreadyReconciling);
    if (busy.size >= maxAtOnce) throw new Refusal(answers.overloaded);
    busy.add(partner);
    response.once("close", () => busy.delete(partner));
  };
}
