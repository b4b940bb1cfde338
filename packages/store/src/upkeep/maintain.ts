import pg from "pg";
import { allowLongStatements, inTransaction, type Queryable, RollBack, setLockTimeout } from "../connect/database.ts";

/** For how many days things are kept. 0: forever. */
export interface RetentionRules {
  /** Events and changes. The month in which the period ends is kept whole. */
  retentionDays: number;
  /** The content of deleted bookings. */
  deletedRetentionDays: number;
  /** Dead letters, after they were resolved. */
  deadLetterRetentionDays: number;
}

/** What one run has done. */
export interface Maintained {
  /** How many rows were deleted from each table, or emptied in `bookings`. Those of dropped partitions are estimates. */
  removed: Record<"booking_events" | "booking_changes" | "bookings" | "dead_letters", number>;
  /** How many of the dead letters were still open. Their events are older than the log. */
  removedOpenLetters: number;
  createdPartitions: string[];
  droppedPartitions: string[];
  /** What an operator has to do, in sentences. */
  problems: string[];
  /** The run has reached its limit. Run it again soon. */
  hasMore: boolean;
  /** Others have locked a table. Run it again, but not soon: everybody waits behind an attempt. */
  isLocked: boolean;
  /** Another process was doing the same, and goes on. */
  isBusy: boolean;
}

/** Everybody waits behind a statement that waits for a table. A later run tries again instead. */
const lockTimeoutMs = 1_000;
/** Reading a log of a hundred million events takes minutes. Nobody waits for that. */
const readingTimeoutMs = 60 * 60 * 1_000;
/** A batch of this size takes well under a second. */
const rowsPerBatch = 5_000;
const bookingsPerBatch = 500;
/** To empty so many takes half a second, and to find them among a million of a booking that are empty, up to 5 s. */
const eventsPerBatch = 20_000;
const stepsPerRun = 20;
/** If maintenance fails for longer, events go to the default partition. */
const monthsAhead = 2;

const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";
const insufficientPrivilege = "42501";
const dependentObjectsStillExist = "2BP01";
/** The server stops, or the transaction took too long. */
const endsConnection = /^(08|57P|25P03|25P04)/;
/**
 * Classes of SQLSTATE whose messages name objects, limits and files. A message of a data exception (22), or one that a
 * trigger raises (P0), may quote values.
 */
const classesThatNameObjects = new Set(["0A", "23", "25", "2B", "40", "42", "53", "54", "55", "57", "58", "XX"]);

/** Another process maintains the database. */
class Busy extends RollBack {
  override name = "Busy";
}

/**
 * Creates the log's partitions of the next months, and removes what is older than the rules say. Any process may call
 * this at any time: one at a time does something. Each step is a short transaction, and the next run goes on after a
 * run that was cut off. A step that fails keeps no other from its work.
 *
 * @param options.signal aborts the run between two steps, or ends a long one
 * @throws if there is no connection to PostgreSQL, or it breaks
 */
export async function maintain(
  pool: pg.Pool,
  rules: RetentionRules,
  { signal }: { signal?: AbortSignal } = {},
): Promise<Maintained> {
  const done: Maintained = {
    removed: { booking_events: 0, booking_changes: 0, bookings: 0, dead_letters: 0 },
    removedOpenLetters: 0,
    createdPartitions: [],
    droppedPartitions: [],
    problems: [],
    hasMore: false,
    isLocked: false,
    isBusy: false,
  };
  for (const [what, job] of jobs) {
    if (signal?.aborted) break;
    try {
      await work({ pool, rules, done, signal }, job);
    } catch (error) {
      if (signal?.aborted) break;
      if (error instanceof Busy) return { ...done, isBusy: true };
      if (!noteProblem(done, what, error)) throw error;
    }
  }
  return done;
}

interface Run {
  pool: pg.Pool;
  rules: RetentionRules;
  done: Maintained;
  signal: AbortSignal | undefined;
}

/** Does one bounded step, and returns whether there may be more. */
type Job = (run: Run) => Promise<boolean>;

const jobs: [what: string, job: Job][] = [
  ["create a partition", createPartitions],
  ["drop an old partition", dropPartition],
  ["delete old events", deleteEvents],
  ["delete old changes", deleteChanges],
  ["remove the content of deleted bookings", removeDeletedContent],
  ["delete old dead letters", deleteDeadLetters],
];

async function work(run: Run, job: Job): Promise<void> {
  for (let steps = 1; await job(run); steps += 1) {
    if (run.signal?.aborted) return;
    if (steps < stepsPerRun) continue;
    run.done.hasMore = true;
    return;
  }
}

/** @returns whether the others can go on, although this job has failed */
function noteProblem(done: Maintained, what: string, error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined || endsConnection.test(error.code)) return false;
  switch (error.code) {
    case lockNotAvailable:
    case deadlockDetected:
      done.isLocked = true;
      break;
    case insufficientPrivilege:
      done.problems.push(
        `The database refuses maintenance (${error.message}). Run deploy/postgres-grants.sql, or npm run ops -- maintain with the owner's DATABASE_URL.`,
      );
      break;
    default:
      done.problems.push(`PostgreSQL could not ${what} (${error.code}): ${describeCause(error)}.`);
  }
  return true;
}

/** Tells an operator what to do, and nothing of what the tables hold. */
function describeCause({ code = "", message, detail }: pg.DatabaseError): string {
  if (!classesThatNameObjects.has(code.slice(0, 2))) return "its own log says why";
  // Details of other errors quote rows.
  return code === dependentObjectsStillExist ? [message, ...(detail?.split("\n") ?? [])].join("; ") : message;
}

/** Locks must come soon, and one process at a time may work. */
async function step<Result>({ pool }: Run, work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
  return inTransaction(pool, async (client) => {
    await setLockTimeout(client, lockTimeoutMs);
    const { rows } = await client.query<{ isFree: boolean }>(
      `select pg_try_advisory_xact_lock(hashtext('booking-events maintenance'), hashtext(current_schema())) as "isFree"`,
    );
    if (rows[0]?.isFree !== true) throw new Busy("Another process maintains the database.");
    return work(client);
  });
}

/** Cancels the statement when the signal aborts. */
async function queryForLong<Row extends pg.QueryResultRow>(
  { pool, signal }: Run,
  client: Queryable,
  text: string,
  values?: unknown[],
) {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const cancel = () => void pool.query("select pg_cancel_backend($1)", [rows[0]?.pid]).catch(() => {});
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    return await (await allowLongStatements(client, readingTimeoutMs)).query<Row>(text, values);
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
}

async function createPartitions(run: Run): Promise<boolean> {
  const { rows } = await step(run, (client) =>
    client.query<{ name: string }>("select create_log_partitions($1) as name", [monthsAhead]),
  );
  run.done.createdPartitions.push(...rows.map(({ name }) => name));
  return false;
}

async function dropPartition(run: Run): Promise<boolean> {
  const { retentionDays } = run.rules;
  if (retentionDays === 0) return false;
  const { rows } = await step(run, (client) =>
    client.query<{ name: string; events: number }>("select name, events from drop_log_partition($1)", [retentionDays]),
  );
  for (const { name, events } of rows) {
    run.done.droppedPartitions.push(name);
    run.done.removed.booking_events += events;
  }
  return rows.length > 0;
}

async function deleteEvents(run: Run): Promise<boolean> {
  return deleteBatch(run, "booking_events", run.rules.retentionDays, "delete_old_events", rowsPerBatch);
}

async function deleteChanges(run: Run): Promise<boolean> {
  return deleteBatch(run, "booking_changes", run.rules.retentionDays, "delete_old_changes", rowsPerBatch);
}

/** Of a booking with millions of events, each step reads those again that are empty already. */
async function removeDeletedContent(run: Run): Promise<boolean> {
  const { deletedRetentionDays } = run.rules;
  if (deletedRetentionDays === 0) return false;
  const { rows } = await step(run, (client) =>
    queryForLong<{ bookings: number; events: number }>(
      run,
      client,
      "select emptied_bookings as bookings, emptied_events as events from empty_deleted_bookings($1, $2, $3)",
      [deletedRetentionDays, bookingsPerBatch, eventsPerBatch],
    ),
  );
  const { bookings = 0, events = 0 } = rows[0] ?? {};
  run.done.removed.bookings += bookings;
  return bookings === bookingsPerBatch || events === eventsPerBatch;
}

async function deleteBatch(
  run: Run,
  table: keyof Maintained["removed"],
  retentionDays: number,
  sqlFunction: string,
  limit: number,
): Promise<boolean> {
  if (retentionDays === 0) return false;
  const { rows } = await step(run, (client) =>
    client.query<{ count: number }>(`select ${sqlFunction}($1, $2) as count`, [retentionDays, limit]),
  );
  const count = rows[0]?.count ?? 0;
  run.done.removed[table] += count;
  return count === limit;
}

async function deleteDeadLetters(run: Run): Promise<boolean> {
  const { deadLetterRetentionDays, retentionDays } = run.rules;
  const { rows } = await step(run, (client) =>
    client.query<{ resolved: number; open: number }>("select resolved, open from delete_old_dead_letters($1, $2, $3)", [
      ...[deadLetterRetentionDays, retentionDays, rowsPerBatch],
    ]),
  );
  const { resolved = 0, open = 0 } = rows[0] ?? {};
  run.done.removed.dead_letters += resolved + open;
  run.done.removedOpenLetters += open;
  return resolved + open === rowsPerBatch;
}

/** What the log has at the moment. */
export interface LogStatus {
  /** When the oldest event was received that is kept; null: there is none. */
  oldestEventAt: Date | null;
  /** An estimate. */
  eventsInDefaultPartition: number;
}

export async function readLogStatus(client: Queryable): Promise<LogStatus> {
  const { rows } = await client.query<LogStatus>(
    `select
       (select received_at from booking_events where outcome <> 'expired' order by id limit 1) as "oldestEventAt",
       coalesce(pg_stat_get_live_tuples(to_regclass('booking_events_default')), 0) as "eventsInDefaultPartition"`,
  );
  return rows[0] ?? { oldestEventAt: null, eventsInDefaultPartition: 0 };
}
