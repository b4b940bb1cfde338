import { changeQueue, readQueueRecord } from "@booking-events/queue";
import { type DatabaseIdentity, readDatabaseIdentity } from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { readDatabase } from "../services/database.ts";
import { withRedis } from "../services/queue.ts";

/**
 * Lets no worker take events, or lets them again.
 *
 * @returns whether it was otherwise before
 */
export function pauseQueue(context: ActingContext, isPaused: boolean): Promise<boolean> {
  const command = isPaused ? "queue pause" : "queue resume";
  return recordAction(context, { command, arguments: {} }, async (record) => {
    const before = await withRedis(context, (queue) => changeQueue(queue, { isPaused }));
    const hasChanged = before.isPaused !== isPaused;
    record.did = { hasChanged };
    return hasChanged;
  });
}

/** @returns the database of the context, and the id of the one that the queue feeds; null: it has fed none yet */
export async function readFedDatabase(
  context: Context,
): Promise<{ identity: DatabaseIdentity; fedDatabase: string | null }> {
  const identity = await readDatabase(context, readDatabaseIdentity);
  const { database } = await withRedis(context, readQueueRecord);
  return { identity, fedDatabase: database };
}

/** Lets the queue feed the database of this id from now on. */
export function attachDatabase(context: ActingContext, id: string): Promise<void> {
  return recordAction(context, { command: "queue attach", arguments: { database: id } }, async () => {
    await withRedis(context, (queue) => changeQueue(queue, { database: id }));
  });
}
