import { formatShards } from "@booking-events/queue";

export interface WorkerState {
  isStopping: () => boolean;
  /** Returns why Redis answers for no shard. Empty: it answers for one. */
  redisProblems: () => string[];
  /** The code of the fault of the current outage of PostgreSQL; null: there is no outage. */
  databaseOutage: () => string | null;
  isMigrated: () => boolean;
  /** Asks PostgreSQL. @returns why it does not answer; null: it does */
  checkDatabase: () => Promise<string | null>;
  durabilityProblems: () => string[];
  stuckShards: () => number[];
  isSharded: () => boolean;
}

/** Returns why the worker is not ready, in sentences for an operator. Empty: it is ready. */
export async function findProblems(state: WorkerState): Promise<string[]> {
  const stuck = state.stuckShards();
  const where = state.isSharded() ? ` in shards ${formatShards(stuck)}` : "";
  return [
    ...(state.isStopping() ? ["The worker is stopping."] : []),
    ...state.redisProblems(),
    ...(await findDatabaseProblems(state)),
    ...state.durabilityProblems(),
    ...(stuck.length > 0 ? [`Events are waiting${where}, and none is finished. Restart this worker.`] : []),
  ];
}

async function findDatabaseProblems(state: WorkerState): Promise<string[]> {
  const outage = state.databaseOutage();
  if (outage !== null)
    return [`PostgreSQL is unavailable (${outage}). Check that it runs and takes writes. The worker waits for it.`];
  if (!state.isMigrated()) return ["The database is being migrated."];
  const problem = await state.checkDatabase();
  if (problem === null) return [];
  return [`PostgreSQL does not answer (${problem}). Check that it runs and that DATABASE_URL is right.`];
}
