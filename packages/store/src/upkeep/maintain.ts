import pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { RollBack } from "../connect/roll-back.ts";
import { inTransaction } from "../connect/transaction.ts";
import { allowLongStatements, setLockTimeout } from "../connect/transaction-limits.ts";
import { type DatabaseTimes, readDatabaseTimes } from "../look/read-database-times.ts";

/** For how many days things are kept. 0: forever. */
export interface RetentionRules {
  /** Events, changes, and what operators did. The month in which the period ends is kept whole. */
  retentionDays: number;
  /** The content of deleted bookings. */
  deletedRetentionDays: number;
  /** Dead letters, after they were resolved. */
  deadLetterRetentionDays: number;
}

/** Of test partners, whose bookings are removed too. `delete_test_data` in 0003_upkeep.sql knows it as well. */
export const testRetention = { testDays: 7 };

export interface Maintained {
  /** How many rows were deleted from each table, or emptied in `bookings`. Those of dropped partitions are estimates. */
  removed: Record<"booking_events" | "booking_changes" | "bookings" | "dead_letters" | "operator_actions", number>;
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
/** To find the events of a deleted booking that has many millions takes minutes. Nobody waits for that. */
const emptyingTimeoutMs = 60 * 60 * 1_000;
/** A batch of this size takes well under a second. */
const rowsPerBatch = 5_000;
const bookingsPerBatch = 500;
/** To empty so many takes half a second, and to find them among a million of a booking that are empty, up to 5 s. */
const eventsPerBatch = 20_000;
const stepsPerRun = 20;
/** If maintenance fails for longer, events go to the default partition. */
const monthsAhead = 2;

/**
 * Creates the log's partitions of the next months, and removes what is older than the rules say. Any process may call
 * this at any time: one at a time does something. Each step is a short transaction, and the next run goes on after a
 * run that was cut off. A step that fails keeps no other from its work.
 *
 * Nothing is removed by one clock alone: what a wrong one removes does not come back. The clocks are compared once. From
 * then on, the run counts the time itself, and PostgreSQL compares its clock with that in each step. So a clock that is set
 * during a run removes nothing either.
 *
 * @param rules {@link testRetention} for a pool of the schema of test partners' bookings
 * @param options.findClockProblem compares PostgreSQL's clock and the newest event with Redis' clock and this host's.
 *   Nothing is removed while it returns a sentence for an operator
 * @param options.signal aborts the run between two steps, or ends a long one
 * @throws if there is no connection to PostgreSQL, or it breaks
 */
export function maintain(
  pool: pg.Pool,
  rules: RetentionRules | typeof testRetention,
  options: MaintenanceOptions,
): Promise<Maintained> {
  if (!("testDays" in rules)) return new Maintenance(pool, rules, options).run("real");
  const days = { retentionDays: rules.testDays, deletedRetentionDays: 0, deadLetterRetentionDays: 0 };
  return new Maintenance(pool, days, options).run("test");
}

export interface MaintenanceOptions {
  findClockProblem: (times: DatabaseTimes) => Promise<string | null>;
  signal?: AbortSignal;
}

/** Does one bounded step, and returns whether there may be more. */
type Job = () => Promise<boolean>;

class Maintenance {
  readonly #pool: pg.Pool;
  readonly #rules: RetentionRules;
  readonly #findClockProblem: MaintenanceOptions["findClockProblem"];
  readonly #signal: AbortSignal | undefined;
  /** When the clocks were compared, by this host's clock and by one that nobody sets. */
  #compared = { atMs: Number.NaN, monotonicMs: Number.NaN };
  readonly #done: Maintained = {
    removed: { booking_events: 0, booking_changes: 0, bookings: 0, dead_letters: 0, operator_actions: 0 },
    removedOpenLetters: 0,
    createdPartitions: [],
    droppedPartitions: [],
    problems: [],
    hasMore: false,
    isLocked: false,
    isBusy: false,
  };

  constructor(pool: pg.Pool, rules: RetentionRules, { findClockProblem, signal }: MaintenanceOptions) {
    this.#pool = pool;
    this.#rules = rules;
    this.#findClockProblem = findClockProblem;
    this.#signal = signal;
  }

  async run(whose: "real" | "test"): Promise<Maintained> {
    const ofTests: [what: string, job: Job][] = [
      ["delete the data of test partners", () => this.#deleteTestData()],
      ["drop an old partition", () => this.#dropPartition()],
    ];
    const ofOthers: [what: string, job: Job][] = [
      ["drop an old partition", () => this.#dropPartition()],
      ["delete old events", () => this.#deleteOld("booking_events", "delete_old_events")],
      ["delete old changes", () => this.#deleteOld("booking_changes", "delete_old_changes")],
      ["find readers that keep old changes", () => this.#findReadersBehind()],
      ["remove the content of deleted bookings", () => this.#emptyDeletedBookings()],
      ["delete old dead letters", () => this.#deleteDeadLetters()],
      ["delete old actions of operators", () => this.#deleteOld("operator_actions", "delete_old_operator_actions")],
    ];
    try {
      await this.#try("create a partition", () => this.#createPartitions());
      if (!(await this.#mayRemove())) return this.#done;
      for (const [what, job] of whose === "test" ? ofTests : ofOthers) await this.#try(what, job);
    } catch (error) {
      if (error instanceof Busy) return { ...this.#done, isBusy: true };
      if (!this.#signal?.aborted) throw error;
    }
    return this.#done;
  }

  async #try(what: string, job: Job): Promise<void> {
    if (this.#signal?.aborted) return;
    try {
      await this.#repeat(job);
    } catch (error) {
      if (this.#signal?.aborted || error instanceof Busy) throw error;
      this.#noteProblem(what, error);
    }
  }

  async #mayRemove(): Promise<boolean> {
    if (Object.values(this.#rules).every((days) => days === 0)) return false;
    let mayRemove = false;
    await this.#try("read its clock", async () => {
      this.#compared = { atMs: Date.now(), monotonicMs: performance.now() };
      const problem = await this.#findClockProblem(await this.#step(readDatabaseTimes));
      if (problem !== null) this.#done.problems.push(`Nothing is removed. ${problem}`);
      mayRemove = problem === null;
      return false;
    });
    return mayRemove;
  }

  /** The time by the clocks that were compared, whatever they have been set to since. */
  #now(): Date {
    const { atMs, monotonicMs } = this.#compared;
    return new Date(atMs + performance.now() - monotonicMs);
  }

  async #repeat(job: Job): Promise<void> {
    for (let steps = 1; await job(); steps += 1) {
      if (this.#signal?.aborted) return;
      if (steps < stepsPerRun) continue;
      this.#done.hasMore = true;
      return;
    }
  }

  /** @throws the error, if the other jobs can't go on either */
  #noteProblem(what: string, error: unknown): void {
    if (!(error instanceof pg.DatabaseError) || endsConnection(error)) throw error;
    if (isLocked(error)) this.#done.isLocked = true;
    else this.#done.problems.push(describeProblem(what, error));
  }

  async #createPartitions(): Promise<boolean> {
    const { rows } = await this.#step((client) =>
      client.query<{ name: string }>("select create_log_partitions($1) as name", [monthsAhead]),
    );
    this.#done.createdPartitions.push(...rows.map(({ name }) => name));
    return false;
  }

  async #dropPartition(): Promise<boolean> {
    const { retentionDays } = this.#rules;
    if (retentionDays === 0) return false;
    const { rows } = await this.#step((client) =>
      client.query<{ name: string; events: number }>("select name, events from drop_log_partition($1, $2)", [
        retentionDays,
        this.#now(),
      ]),
    );
    for (const { name, events } of rows) {
      this.#done.droppedPartitions.push(name);
      this.#done.removed.booking_events += events;
    }
    return rows.length > 0;
  }

  /** Says what keeps changes beyond their time. */
  async #findReadersBehind(): Promise<boolean> {
    const { retentionDays } = this.#rules;
    if (retentionDays === 0) return false;
    const { rows } = await this.#step((client) =>
      client.query<{ name: string }>(
        `select name from feed_readers join booking_changes on id = last_id + 1
         where seen_at > now() - interval '1 day' and greatest(changed_at, sequence_time(sequence)) < log_horizon($1, $2)
         order by last_id limit 10`,
        [retentionDays, this.#now()],
      ),
    );
    const names = rows.map(({ name }) => name).join(", ");
    if (names !== "")
      this.#done.problems.push(
        `These readers of the feed have not read changes that are older than RETENTION_DAYS: ${names}. Their changes are kept up to twice as long. See that they catch up.`,
      );
    return false;
  }

  async #deleteOld(
    table: "booking_events" | "booking_changes" | "operator_actions",
    sqlFunction: string,
  ): Promise<boolean> {
    const { retentionDays } = this.#rules;
    if (retentionDays === 0) return false;
    const { rows } = await this.#step((client) =>
      client.query<{ count: number }>(`select ${sqlFunction}($1, $2, $3) as count`, [
        retentionDays,
        this.#now(),
        rowsPerBatch,
      ]),
    );
    const count = rows[0]?.count ?? 0;
    this.#done.removed[table] += count;
    return count === rowsPerBatch;
  }

  /** Of a booking with millions of events, each step reads those again that are empty already. */
  async #emptyDeletedBookings(): Promise<boolean> {
    const { deletedRetentionDays } = this.#rules;
    if (deletedRetentionDays === 0) return false;
    const { rows } = await this.#step((client) =>
      this.#queryForLong<{ bookings: number; events: number }>(
        client,
        "select emptied_bookings as bookings, emptied_events as events from empty_deleted_bookings($1, $2, $3, $4)",
        [deletedRetentionDays, this.#now(), bookingsPerBatch, eventsPerBatch],
      ),
    );
    const { bookings = 0, events = 0 } = rows[0] ?? {};
    this.#done.removed.bookings += bookings;
    return bookings === bookingsPerBatch || events === eventsPerBatch;
  }

  async #deleteDeadLetters(): Promise<boolean> {
    const { deadLetterRetentionDays, retentionDays } = this.#rules;
    const { rows } = await this.#step((client) =>
      client.query<{ resolved: number; open: number }>(
        "select resolved, open from delete_old_dead_letters($1, $2, $3, $4)",
        [deadLetterRetentionDays, retentionDays, this.#now(), rowsPerBatch],
      ),
    );
    const { resolved = 0, open = 0 } = rows[0] ?? {};
    this.#done.removed.dead_letters += resolved + open;
    this.#done.removedOpenLetters += open;
    return resolved + open === rowsPerBatch;
  }

  async #deleteTestData(): Promise<boolean> {
    const { rows } = await this.#step((client) =>
      client.query<{ name: "bookings" | "booking_events" | "booking_changes" | "dead_letters"; deleted: number }>(
        "select name, deleted from delete_test_data($1, $2)",
        [this.#now(), rowsPerBatch],
      ),
    );
    for (const { name, deleted } of rows) this.#done.removed[name] += deleted;
    return rows.some(({ deleted }) => deleted >= rowsPerBatch);
  }

  /** Locks must come soon, and one process at a time may work. */
  #step<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    return inTransaction(this.#pool, async (client) => {
      await setLockTimeout(client, lockTimeoutMs);
      const { rows } = await client.query<{ isFree: boolean }>(
        `select pg_try_advisory_xact_lock(hashtext('booking-events maintenance'), hashtext(current_schema())) as "isFree"`,
      );
      if (rows[0]?.isFree !== true) throw new Busy("Another process maintains the database.");
      return work(client);
    });
  }

  /** Cancels the statement when the signal aborts. */
  async #queryForLong<Row extends pg.QueryResultRow>(client: Queryable, text: string, values: unknown[]) {
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const cancel = () => void this.#pool.query("select pg_cancel_backend($1)", [rows[0]?.pid]).catch(() => {});
    this.#signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await (await allowLongStatements(client, emptyingTimeoutMs)).query<Row>(text, values);
    } finally {
      this.#signal?.removeEventListener("abort", cancel);
    }
  }
}

class Busy extends RollBack {
  override name = "Busy";
}

const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";
const insufficientPrivilege = "42501";
const dependentObjectsStillExist = "2BP01";

/** The server stops, or the transaction took too long. */
function endsConnection({ code }: pg.DatabaseError): boolean {
  return code === undefined || /^(08|57P|25P03|25P04)/.test(code);
}

function isLocked({ code }: pg.DatabaseError): boolean {
  return code === lockNotAvailable || code === deadlockDetected;
}

/** Tells an operator what to do, and nothing of what the tables hold. */
function describeProblem(what: string, error: pg.DatabaseError): string {
  if (error.code === insufficientPrivilege)
    return `The database refuses maintenance (${error.message}). With the owner's DATABASE_URL, run ops migrate --grant or ops maintain.`;
  return `PostgreSQL could not ${what} (${error.code}): ${describeCause(error)}.`;
}

/**
 * Classes of SQLSTATE whose messages name objects, limits and files. A message of a data exception (22), or one that a
 * trigger raises (P0), may quote values.
 */
const classesThatNameObjects = new Set(["0A", "23", "25", "2B", "40", "42", "53", "54", "55", "57", "58", "XX"]);

function describeCause({ code = "", message, detail }: pg.DatabaseError): string {
  if (!classesThatNameObjects.has(code.slice(0, 2))) return "its own log says why";
  // Details of other errors quote rows.
  return code === dependentObjectsStillExist ? [message, ...(detail?.split("\n") ?? [])].join("; ") : message;
}
