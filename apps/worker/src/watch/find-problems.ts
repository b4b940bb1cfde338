/** What the worker knows of itself and of what it depends on. */
export interface WorkerState {
  isStopping: () => boolean;
  isRedisConnected: () => boolean;
  /** The code of the fault by which PostgreSQL is known to be out; null: it isn't. */
  databaseOutage: () => string | null;
  isMigrated: () => boolean;
  /** @returns why PostgreSQL does not answer now; null: it does */
  checkDatabase: () => Promise<string | null>;
  durabilityProblems: () => string[];
  isStuck: () => boolean;
}

/** Why the worker is not ready, as sentences for an operator. Empty: it is. */
export async function findProblems(state: WorkerState): Promise<string[]> {
  return [
    ...(state.isStopping() ? ["The worker is stopping."] : []),
    ...(state.isRedisConnected() ? [] : ["Redis does not answer. Check that it runs and that REDIS_URL is right."]),
    ...(await findDatabaseProblems(state)),
    ...state.durabilityProblems(),
    ...(state.isStuck() ? ["Events wait and none comes to an end. Restart this worker."] : []),
  ];
}

async function findDatabaseProblems(state: WorkerState): Promise<string[]> {
  const outage = state.databaseOutage();
  if (outage !== null)
    return [`PostgreSQL is out (${outage}): the worker waits for it. Check that it runs and is writable.`];
  if (!state.isMigrated()) return ["The database is being migrated."];
  const problem = await state.checkDatabase();
  if (problem === null) return [];
  return [`PostgreSQL does not answer (${problem}). Check that it runs and that DATABASE_URL is right.`];
}
