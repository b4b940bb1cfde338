import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultSchema, type Queryable } from "@booking-events/store";
import { begin, connect, disconnect, type FeedClient } from "./connect.ts";
import { readPage } from "./deliver/read-page.ts";
import { FeedGapError, ForeignReaderError } from "./errors.ts";
import { type Handled, type HandlingContext, handleChanges, TransactionLost } from "./handle-changes.ts";
import { consoleLogger, type FeedLogger, nameError } from "./logger.ts";
import { growingPauseMs } from "./pauses.ts";
import { type BookingChange, readChanges } from "./read-changes.ts";
import { findPlace, lockReader, moveReader, noteSeen, placeReader } from "./readers.ts";
import { type FeedTables, tablesIn } from "./tables.ts";
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
  from?: "beginning" | "now";
  /** Handles one change. The next one waits for it. If it throws, the same comes again, after pauses that grow to a minute. */
  onChange: (change: BookingChange, context: HandlingContext) => Promise<void>;
  /** Ends following. A handler that is running then has a second to finish. */
  signal: AbortSignal;
  /** How often to look for changes if no notification comes, and whether to take over. Default: 1,000 ms. */
  pollIntervalMs?: number;
  /** Told of lost connections and of changes that can't be handled. Default: the console. */
  logger?: FeedLogger;
}

/**
 * How many changes share a transaction, unless their handlers take more than a second. PostgreSQL keeps this many
 * subtransactions of a transaction in shared memory. With more, everybody's queries become slower. Each change has a
 * savepoint, which becomes a subtransaction when the consumer writes.
 */
const pageSize = 64;
/**
 * How long a handler may go without a statement in its transaction. Then PostgreSQL rolls the transaction back, and
 * another follower takes over, since the process may be frozen.
 */
const handlerTimeoutMs = 60_000;
const longestRetryPauseMs = 60_000;
const longestReconnectPauseMs = 10_000;
/** How often a program that waits records that it runs. */
const seenIntervalMs = 30_000;
/** How long a handler may go on after the signal has aborted. */
const graceMs = 1_000;

/**
 * Calls `onChange` with each change of the feed, in the order of their ids, until the signal aborts.
 *
 * - A change that `onChange` handles by writing in the given transaction counts exactly once. Other effects may happen
 *   again if the process dies or the connection breaks before the transaction is committed.
 * - Any number of processes may follow under one name. One at a time handles changes; when it dies, another takes over
 *   within a poll interval. If it freezes, that takes a minute.
 * - If PostgreSQL fails, it reconnects after growing pauses of up to 10 s, and never gives up.
 *
 * @returns when the signal has aborted
 * @throws FeedGapError when changes are missing; ForeignReaderError when the name belongs to another role; TypeError when
 *   the name is wrong
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
  /** The change that could not be handled, and how often it has failed in this process. */
  failing: { id: number; attempts: number } | undefined;
  /** When to record next that the program runs, by `performance.now()`. */
  noteSeenAtMs: number;
}

const defaults = {
  schema: defaultSchema,
  from: "beginning",
  pollIntervalMs: 1_000,
  logger: consoleLogger,
} satisfies Partial<FollowOptions>;

function createFollower(options: FollowOptions, signal: AbortSignal): Follower {
  const settings: Required<FollowOptions> = { listenUrl: options.database, ...defaults, ...options, signal };
  const { name, schema } = settings;
  if (!/^[\w.-]{1,100}$/.test(name)) throw new TypeError("name must be 1 to 100 letters, digits, dots, - and _.");
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
  let failures = 0;
  const noteProgress = () => {
    failures = 0;
  };
  while (!signal.aborted) {
    try {
      await connectAndFollow(follower, noteProgress);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof FeedGapError || error instanceof ForeignReaderError) throw error;
      if (error instanceof TransactionLost) await pauseAfter({ change: error.change, error }, follower);
      else {
        failures += 1;
        logger.warn({ name, code: nameError(error) }, "reconnecting to PostgreSQL after a failure");
        await pause(growingPauseMs(failures, longestReconnectPauseMs), signal);
      }
    }
  }
}

async function connectAndFollow(follower: Follower, onProgress: () => void): Promise<void> {
  const client = await connect(follower.database, follower.name);
  follower.client = client;
  try {
    await followOn(client, follower, onProgress);
  } finally {
    disconnect(client);
  }
}

/** @param onProgress called when PostgreSQL has done what it was asked to */
async function followOn(client: FeedClient, follower: Follower, onProgress: () => void): Promise<void> {
  const { wakeUps, pollIntervalMs, signal } = follower;
  while (!signal.aborted) {
    const place = await findPlace(client, follower);
    if (place === "none" || place === "reset")
      await placeReader(client, follower, { at: follower.from, isReset: place === "reset" });
    else if (place === "at-end") await wakeUps.wait(pollIntervalMs);
    else await takePage(client, follower);
    await noteSeenRegularly(client, follower);
    onProgress();
  }
}

async function noteSeenRegularly(client: Queryable, follower: Follower): Promise<void> {
  if (performance.now() < follower.noteSeenAtMs) return;
  await noteSeen(client, follower);
  follower.noteSeenAtMs = performance.now() + seenIntervalMs;
}

/** One transaction: the changes of a page, and the reader's place after those that were handled. */
async function takePage(client: FeedClient, follower: Follower): Promise<void> {
  const { name, tables, pollIntervalMs, failing, signal } = follower;
  await begin(client, handlerTimeoutMs);
  const lastRead = await lockReader(client, follower);
  if (lastRead === null) {
    await client.query("rollback");
    // Another follower is active. Look again later whether it still is.
    return pause(pollIntervalMs, signal);
  }
  const all = { partners: null, kinds: null, skip: null };
  const { entries } = await readPage(client, tables, { name, after: lastRead, limit: pageSize, ...all });
  const changes = await readChanges(client, tables, { name, ids: entries.map(({ id }) => id) });
  const { lastId, failure } = await handleChanges(isolate(changes, failing?.id), { ...follower, client });
  if (lastId !== undefined) await moveReader(client, follower, lastId);
  await client.query("commit");
  if (failure !== undefined) await pauseAfter(failure, follower);
}

/** Those before a change that has failed, or it alone: if it loses the transaction, that undoes nothing else. */
function isolate(changes: BookingChange[], failingId: number | undefined): BookingChange[] {
  const place = changes.findIndex(({ id }) => id === failingId);
  return place === -1 ? changes : changes.slice(0, Math.max(place, 1));
}

async function pauseAfter({ change, error }: NonNullable<Handled["failure"]>, follower: Follower): Promise<void> {
  const { name, logger, signal } = follower;
  const { id } = change;
  const attempts = follower.failing?.id === id ? follower.failing.attempts + 1 : 1;
  follower.failing = { id, attempts };
  const details = { name, changeId: id, attempt: attempts, code: nameError(error) };
  logger.warn(details, "a change could not be handled: trying again");
  await pause(growingPauseMs(attempts, longestRetryPauseMs), signal);
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
