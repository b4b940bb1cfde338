import { setTimeout as sleep } from "node:timers/promises";
import { inTransaction, type Queryable } from "@booking-events/store";
import type { Pool } from "../context.ts";
import { unknownSubscription } from "./find-subscription.ts";

/** A process that has died is active for up to 10 s more. */
const limitMs = 20_000;
const stepMs = 200;

/**
 * Changes a paused subscription in a transaction, once the process that posts has let go of its reader.
 *
 * @param change returns `busy` as long as it has not
 * @returns false: it did not
 * @throws OperationFailure if there is no such subscription
 */
export async function onceIdle(
  pool: Pool,
  name: string,
  change: (client: Queryable) => Promise<"unknown" | "busy" | "removed" | "changed">,
): Promise<boolean> {
  for (const giveUpAtMs = Date.now() + limitMs; Date.now() <= giveUpAtMs; await sleep(stepMs)) {
    const result = await inTransaction(pool, change);
    if (result === "unknown") throw unknownSubscription(name);
    if (result !== "busy") return true;
  }
  return false;
}
