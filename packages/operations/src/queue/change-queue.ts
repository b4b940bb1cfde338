import { changeQueue, readQueueRecord } from "@booking-events/queue";
import { type DatabaseIdentity, readDatabaseIdentity } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase } from "../services/database.ts";
import { withRedis } from "../services/queue.ts";

/**
 * Lets no worker take events, or lets them again.
 *
 * @returns whether it was otherwise before
 */
export async function pauseQueue(context: Context, isPaused: boolean): Promise<boolean> {
  const before = await withRedis(context, (queue) => changeQueue(queue, { isPaused }));
  return before.isPaused !== isPaused;
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
export async function attachDatabase(context: Context, id: string): Promise<void> {
  await withRedis(context, (queue) => changeQueue(queue, { database: id }));
}
