import { setTimeout as sleep } from "node:timers/promises";
import {
  EnqueueError,
  type NumberedEvent,
  type QueueLoad,
  SequenceInFuture,
  type ShardedProducer,
} from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { findProcessed, listDeadLetters, type Queryable } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure, stopIfCancelled } from "../operation-failure.ts";
import { withProducer } from "../services/queue.ts";

/**
 * An import, or a restore, adds no event while more than this wait in the queue, so that partners' events wait about two
 * seconds behind it at most. It is also at most a tenth of `MAX_BACKLOG`, so that ingest refuses no event because of it.
 */
const maxWaitingAhead = 10_000;
const maxBacklogShare = 0.1;
/** As a share of the memory at which ingest refuses events. */
const maxMemoryShare = 0.8;
/** Events that are checked and queued together. */
export const eventsTogether = 500;
const pollIntervalMs = 50;

interface QueueLimits {
  maxBacklog: number;
  memoryHighWater: number;
}

interface Services {
  producer: ShardedProducer;
  pool: Queryable;
  limits: QueueLimits;
}

/** Queues events when there is room. */
export type QueueWhenRoom = (events: NumberedEvent[], progress: QueueingProgress) => Promise<void>;

/** What is told while events are queued, so that work that is interrupted can say how far it was. */
export interface QueueingProgress {
  /** `known`: events that were applied, queued or given up before. */
  count: (what: "queued" | "known", by: number) => void;
  /** Called before each wait for room. */
  wait: (shortage: Shortage) => void;
  /** Ends the work, also while it waits. */
  signal?: AbortSignal | undefined;
}

export interface Shortage {
  reason: string;
  /** What the operator can do if it lasts. A sentence. */
  advice: string;
}

/**
 * Runs work that queues many events, once Redis can store them safely.
 *
 * @throws OperationFailure
 */
export function withRoom<Result>(
  context: Context,
  pool: Queryable,
  what: "import" | "restore",
  work: (queue: QueueWhenRoom) => Promise<Result>,
): Promise<Result> {
  const { MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER } = variables;
  const given = parseEnvironment({ MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER }, context.environment);
  const limits = { maxBacklog: given.MAX_BACKLOG, memoryHighWater: given.REDIS_MEMORY_HIGH_WATER };
  return withProducer(context, `Nothing was ${what}ed.`, (producer) =>
    work((events, progress) => queueEvents(events, { producer, pool, limits }, progress)),
  ).catch((error: unknown) => {
    if (!(error instanceof EnqueueError)) throw error;
    const advice =
      error.cause instanceof SequenceInFuture
        ? tooLate[what]
        : "Redis did not take all events. Check that it runs, and run the same command again.";
    throw new OperationFailure(advice, { cause: error });
  });
}

const tooLate = {
  import:
    "The time of --as-of is later than Redis' clock shows, so later events of partners would lose to the import. " +
    "Give the time when the export was made, or wait a moment, and run the same command again.",
  restore:
    "Redis' clock shows an earlier time than when the restore began, so later events of partners would lose to it. " +
    "Correct that clock, or wait a moment, and run the same command again.",
};

/** Queues the events that are neither in the log nor dead letters nor in the queue, when there is room. */
export async function queueEvents(
  events: NumberedEvent[],
  { producer, pool, limits }: Services,
  { count, wait, signal }: QueueingProgress,
): Promise<void> {
  const fresh = await findNew(pool, events);
  count("known", events.length - fresh.length);
  for (let from = 0; from < fresh.length; ) {
    const limit = Math.max(1, Math.min(maxWaitingAhead, Math.floor(limits.maxBacklog * maxBacklogShare)));
    // A few large calls cost Redis less than many small ones.
    const wanted = Math.min(eventsTogether, limit, fresh.length - from);
    await waitForRoom(producer, { wanted, limit, memoryHighWater: limits.memoryHighWater }, { wait, signal });
    const queued = await producer.enqueueNumbered(fresh.slice(from, from + wanted));
    count("queued", queued);
    count("known", wanted - queued);
    from += wanted;
  }
}

/** A worker would recognise the events in the log, too. But it would apply again what an operator has discarded. */
async function findNew(pool: Queryable, events: NumberedEvent[]): Promise<NumberedEvent[]> {
  const eventIds = events.map(({ eventId }) => eventId);
  const [processed, letters] = await Promise.all([
    findProcessed(pool, eventIds),
    listDeadLetters(pool, { eventIds, includeResolved: true }),
  ]);
  const dead = new Set(letters.map(({ eventId }) => eventId));
  return events.filter(({ eventId }) => !processed.has(eventId) && !dead.has(eventId));
}

async function waitForRoom(
  producer: ShardedProducer,
  { wanted, limit, memoryHighWater }: { wanted: number; limit: number; memoryHighWater: number },
  { wait, signal }: Pick<QueueingProgress, "wait" | "signal">,
): Promise<void> {
  const memoryLimit = memoryHighWater * maxMemoryShare;
  for (;;) {
    stopIfCancelled(signal);
    const { backlog, memoryShare } = await measureLoad(producer);
    if (memoryShare >= memoryLimit) wait(describeMemory(memoryShare, memoryLimit, backlog));
    else if (limit - backlog < wanted) wait(describeBacklog(backlog));
    else return;
    await sleep(pollIntervalMs);
  }
}

function describeMemory(share: number, limit: number, backlog: number): Shortage {
  return {
    reason: `Redis uses ${toPercent(share)} of its maxmemory; this waits above ${toPercent(limit)}`,
    advice:
      backlog > 0
        ? "Check that the worker runs, or raise maxmemory."
        : "Raise maxmemory, or find out what fills Redis.",
  };
}

function describeBacklog(backlog: number): Shortage {
  return { reason: `${backlog} events are in the queue`, advice: "Check that the worker runs." };
}

function toPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** A plain error would be taken for one of PostgreSQL's driver. */
async function measureLoad(producer: ShardedProducer): Promise<QueueLoad> {
  try {
    return await producer.measureLoad();
  } catch (error) {
    throw new OperationFailure("Redis does not answer. Check that it runs, and run the same command again.", {
      cause: error,
    });
  }
}
