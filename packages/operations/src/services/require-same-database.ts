import { describeOtherDatabase, type QueueRecord, readQueueRecord } from "@booking-events/queue";
import { type DatabaseIdentity, type Queryable, readDatabaseIdentity } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withRedis } from "./queue.ts";

/**
 * Refuses to work with a queue and a database that do not belong together.
 *
 * @returns what is recorded of the queue
 * @throws OperationFailure if the queue feeds another database, or Redis can't be reached
 */
export async function requireSameDatabase(context: Context, client: Queryable): Promise<QueueRecord> {
  const record = await withRedis(context, readQueueRecord);
  const problem = findOtherDatabase(record, await readDatabaseIdentity(client));
  if (problem !== null) throw new OperationFailure(problem);
  return record;
}

/** @returns a sentence for the operator; null: the queue feeds this database, or none yet */
export function findOtherDatabase(
  { database }: { database: string | null },
  identity: DatabaseIdentity,
): string | null {
  return database === null || database === identity.id ? null : describeOtherDatabase(database, identity);
}
