import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultSchema, type Queryable } from "@booking-events/store";
import { begin, connect, disconnect, type FeedClient } from "./connect.ts";
import { FeedGapError, ForeignReaderError, HandlingStopped, TransactionLost } from "./errors.ts";
import { readCompletePage } from "./feed-position.ts";
import { type Handled, type Handlers, handleChanges } from "./handle-changes.ts";
import { consoleLogger, type FeedLogger, nameError } from "./logger.ts";
import { growingPauseMs } from "./pauses.ts";
import type { BookingChange } from "./read-changes.ts";
import { findPlace, lockReader, moveReader, noteSeen, placeReader } from "./readers.ts";
import { type FeedTables, tablesIn } from "./tables.ts";
import { type SnapshotBooking, type SnapshotContext, SnapshotFailed, takeSnapshot } from "./take-snapshot.ts";
import { createWakeUps, type WakeUps } from "./wake-ups.ts";

export interface FollowOptions {
  /**
   * The reader's name, in `feed_readers`: letters, digits, dots, - and _. Of all followers of one name, one at a time is
   * active. The role that follows first owns the name, and no other can move the reader.
   */
  name: string;
  /** PostgreSQL's URL. If it leads through PgBouncer in transaction mode, give `listenUrl` too. */
  database: string;
  /** Where the service's tables are. Default: `"public"`. */
  schema?: string;
  /** For LISTEN: a direct connection to PostgreSQL, or null to poll only. Default: `database`. */
  listenUrl?: string | null;
  /** Where a reader begins that is new or has been reset. Others go on from their place. Default: `"beginning"`. */
  from?: "beginning" | "now" | "snapshot";
  /**
   * Deletes all that the program keeps of bookings. Called before each snapshot: a program that starts over may keep what
   * no longer exists, such as erased guests. Required by `from: "snapshot"`.
   */
  deleteAll?: (context: SnapshotContext) => Promise<unknown>;
  /** Gets all bookings, in pages, before the first change. Required by `from: "snapshot"`. */
  onSnapshot?: (bookings: SnapshotBooking[], context: SnapshotContext) => Promise<void>;
  /** Handles one change. The next one waits for it. */
  onChange: Handlers["onChange"];
  /** Decides what to do when `onChange` throws. Default: retry, after pauses that grow to a minute. */
  onError?: Handlers["onError"];
  /** Ends following. A handler that is running then has a second to finish. */
  signal: AbortSignal;
  /** How often to look for changes if no notification comes, and whether to take over. Default: 1,000 ms. */
  pollIntervalMs?: number;
  /** How many changes share a transaction, unless their handlers take more than a second. Default: 64. */
  pageSize?: number;
  /**
   * How long a handler may go without a statement in its transaction. Then PostgreSQL rolls the transaction back, and
   * another follower takes over, since the process may be frozen. If this one goes on, the change has failed with a
   * `HandlerTimedOut`. Default: 60,000 ms.
   */
  handlerTimeoutMs?: number;
  /** Told of lost connections and of changes that can't be handled. Default: the console. */
  logger?: FeedLogger;
}

const longestRetryPauseMs = 60_000;
const longestReconnectPauseMs = 10_000;
/** How often a program that waits records that it runs. */
export const seenIntervalMs = 30_000;
/** How long a handler may go on after the signal has aborted. */
const graceMs = 1_000;

/**
 * Calls `onChange` with each change of the feed, in the order of their ids, until the signal aborts.
 *
 * - A change that `onChange` handles by writing in the given transaction counts exactly once. Other effects may happen
 *   again if the process dies or the connection breaks before the transaction is committed.
 * - Any number of processes may follow under one name. One at a time handles changes; when it dies, another takes over
 *   within a poll interval. If it freezes, that takes `handlerTimeoutMs`.
 * - If PostgreSQL fails, it reconnects after growing pauses of up to 10 s, and never gives up.
 *
 * @returns when the signal has aborted
 * @throws FeedGapError when changes are missing; ForeignReaderError when the name belongs to another role;
 *   HandlingStopped when `onError` answers `"stop"` or throws; what `deleteAll` and `onSnapshot` throw; TypeError when
 *   options are wrong
 */
export async function follow(options: FollowOptions): Promise<void> {
  const { signal } = options;
  const ending = new AbortController();
  const follower = createFollower(options, AbortSignal.any([signal, ending.signal]));
  const following = followUntilAborted(follower);
  try {
    await Promise.race([following, graceAfterAbort(signal, ending.signal)]);
  } finally {
    ending.abort();
    // What a handler still does on its connection fails from here on.
    if (follower.client !== undefined) disconnect(follower.client);
    following.catch(() => {});
  }
}

interface Follower extends Required<FollowOptions> {
  tables: FeedTables;
  wakeUps: WakeUps;
  client: FeedClient | undefined;
  /**
   * The change that could not be handled, how often `onError` was asked about it in this process, and the failure that
   * it is still to be asked about.
   */
  failing: { id: number; attempts: number; undecided?: TransactionLost } | undefined;
  /** When to record next that the program runs, by `performance.now()`. */
  noteSeenAtMs: number;
}

const defaults = {
  schema: defaultSchema,
  from: "beginning",
  deleteAll: async () => {},
  onSnapshot: async () => {},
  onError: async () => "retry",
  pollIntervalMs: 1_000,
  /**
   * PostgreSQL keeps this many subtransactions of a transaction in shared memory. With more, everybody's queries become
   * slower. Each change has a savepoint, which becomes a subtransaction when the consumer writes.
   */
  pageSize: 64,
  handlerTimeoutMs: 60_000,
  logger: consoleLogger,
} satisfies Partial<FollowOptions>;

function createFollower(options: FollowOptions, signal: AbortSignal): Follower {
  const settings: Required<FollowOptions> = { listenUrl: options.database, ...defaults, ...options, signal };
  const { name, schema, from, pageSize } = settings;
  if (!/^[\w.-]{1,100}$/.test(name)) throw new TypeError("name must be 1 to 100 letters, digits, dots, - and _.");
  if (from === "snapshot" && (options.onSnapshot === undefined || options.deleteAll === undefined))
    throw new TypeError('from: "snapshot" needs deleteAll and onSnapshot.');
  if (!Number.isInteger(pageSize) || pageSize < 1) throw new TypeError("pageSize must be a whole number from 1.");
  return {
    ...settings,
    tables: tablesIn(schema),
    wakeUps: createWakeUps(settings),
    client: undefined,
    failing: undefined,
    noteSeenAtMs: 0,
  };
}

async function followUntilAborted(follower: Follower): Promise<void> {
  const { name, logger, signal } = follower;
  for (let failures = 0; !signal.aborted; ) {
    try {
      follower.client = await connect(follower.database, name);
      await followOn(follower.client, follower, () => {
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) throw error;
      if (error instanceof SnapshotFailed) throw error.cause;
      failures += 1;
      const isLost = error instanceof TransactionLost;
      if (isLost) keepForOnError(error, follower);
      const details = { name, ...(isLost && { changeId: error.change.id }), code: nameError(error) };
      logger.warn(details, "reconnecting to PostgreSQL after a failure");
      await pause(growingPauseMs(failures, longestReconnectPauseMs), signal);
    } finally {
      if (follower.client !== undefined) disconnect(follower.client);
    }
  }
}

/** Another attempt would fail as well. */
function isFinal(error: unknown): boolean {
  return error instanceof FeedGapError || error instanceof ForeignReaderError || error instanceof HandlingStopped;
}

/** @param onProgress called when PostgreSQL has done what it was asked to */
async function followOn(client: FeedClient, follower: Follower, onProgress: () => void): Promise<void> {
  const { wakeUps, pollIntervalMs, signal } = follower;
  while (!signal.aborted) {
    const place = await findPlace(client, follower);
    if (place === "none" || place === "reset") await beginReading(client, follower, place === "reset");
    else if (place === "at-end") await wakeUps.wait(pollIntervalMs);
    else await takePage(client, follower);
    await noteSeenRegularly(client, follower);
    onProgress();
  }
}

async function beginReading(client: Queryable, follower: Follower, isReset: boolean): Promise<void> {
  if (follower.from === "snapshot") await takeSnapshot(client, follower);
  else await placeReader(client, follower, { at: follower.from, isReset });
}

async function noteSeenRegularly(client: Queryable, follower: Follower): Promise<void> {
  if (performance.now() < follower.noteSeenAtMs) return;
  await noteSeen(client, follower);
  follower.noteSeenAtMs = performance.now() + seenIntervalMs;
}

/** One transaction: the changes of a page, and the reader's place after those that were handled. */
async function takePage(client: FeedClient, follower: Follower): Promise<void> {
  const { name, tables, pageSize, pollIntervalMs, handlerTimeoutMs, failing, signal } = follower;
  await begin(client, { isolation: "read committed", idleTimeoutMs: handlerTimeoutMs });
  const lastRead = await lockReader(client, follower);
  if (lastRead === null) {
    await client.query("rollback");
    // Another follower is active. Look again later whether it still is.
    return pause(pollIntervalMs, signal);
  }
  const changes = await readCompletePage(client, { name, after: lastRead, limit: pageSize, tables });
  const { lastId, failure } = await handleChanges(isolate(changes, failing?.id), {
    ...follower,
    client,
    undecided: failing?.undecided,
    attemptsBefore: (id) => attemptsBefore(id, follower),
  });
  if (lastId !== undefined) await moveReader(client, follower, lastId);
  await client.query("commit");
  if (failure !== undefined) await dealWith(failure, follower);
}

/** Those before a change that has failed, or it alone: if it loses the transaction, that undoes nothing else. */
function isolate(changes: BookingChange[], failingId: number | undefined): BookingChange[] {
  const place = changes.findIndex(({ id }) => id === failingId);
  return place === -1 ? changes : changes.slice(0, Math.max(place, 1));
}

async function dealWith(failure: NonNullable<Handled["failure"]>, follower: Follower): Promise<void> {
  const { change, attempt, nextStep, error } = failure;
  if (nextStep === "stop") throw new HandlingStopped(change, error);
  follower.failing = { id: change.id, attempts: attempt };
  await pause(growingPauseMs(attempt, longestRetryPauseMs), follower.signal);
}

/** `onError` writes in a transaction, so it is asked in the next one. */
function keepForOnError(lost: TransactionLost, follower: Follower): void {
  const { id } = lost.change;
  follower.failing = { id, attempts: attemptsBefore(id, follower), undecided: lost };
}

function attemptsBefore(id: number, { failing }: Follower): number {
  return failing?.id === id ? failing.attempts : 0;
}

/** Ends early when the signal aborts. */
async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  await sleep(durationMs, undefined, { signal }).catch(() => {});
}

/** @param ended when nobody waits any more */
async function graceAfterAbort(signal: AbortSignal, ended: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort", { signal: ended });
  await sleep(graceMs, undefined, { signal: ended });
}
