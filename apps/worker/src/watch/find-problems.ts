export interface WorkerState {
  isStopping: () => boolean;
  /** Returns why Redis does not answer; null: it does. */
  redisProblem: () => string | null;
  /** The code of the fault of the current outage of PostgreSQL; null: there is no outage. */
  databaseOutage: () => string | null;
  isMigrated: () => boolean;
  /** Asks PostgreSQL. @returns why it does not answer; null: it does */
  checkDatabase: () => Promise<string | null>;
  durabilityProblems: () => string[];
  isStuck: () => boolean;
}

/** Returns why the worker is not ready, in sentences for an operator. Empty: it is ready. */
export async function findProblems(state: WorkerState): Promise<string[]> {
  const redisProblem = state.redisProblem();
  return [
    ...(state.isStopping() ? ["The worker is stopping."] : []),
    ...(redisProblem === null ? [] : [redisProblem]),
    ...(await findDatabaseProblems(state)),
    ...state.durabilityProblems(),
    ...(state.isStuck() ? ["Events are waiting, and none is finished. Restart this worker."] : []),
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
