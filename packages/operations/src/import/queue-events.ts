import { setTimeout as sleep } from "node:timers/promises";
import type { NumberedEvent, QueueLoad, ShardedProducer } from "@booking-events/queue";
import { findProcessed, listDeadLetters, type Queryable } from "@booking-events/store";
import { stopIfCancelled } from "../cancel.ts";
import { OperationFailure } from "../operation-failure.ts";

/**
 * An import adds no event while more than this wait in the queue, so that partners' events wait about two seconds behind
 * it at most. It is also at most a tenth of `MAX_BACKLOG`, so that ingest refuses no event because of it.
 */
const maxImportBacklog = 10_000;
const maxBacklogShare = 0.1;
/** As a share of the memory at which ingest refuses events. */
const maxMemoryShare = 0.8;
/** Events that are checked and queued together. */
export const eventsTogether = 500;
const pollIntervalMs = 50;

export interface QueueLimits {
  maxBacklog: number;
  memoryHighWater: number;
}

/** What is told while events are queued, so that an import that is interrupted can say how far it was. */
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

/** Queues the events that are neither in the log nor dead letters nor in the queue, when there is room. */
export async function queueEvents(
  events: NumberedEvent[],
  services: { producer: ShardedProducer; pool: Queryable },
  limits: QueueLimits,
  { count, wait, signal }: QueueingProgress,
): Promise<void> {
  const fresh = await findNew(services.pool, events);
  count("known", events.length - fresh.length);
  for (let from = 0; from < fresh.length; ) {
    const limit = Math.max(1, Math.min(maxImportBacklog, Math.floor(limits.maxBacklog * maxBacklogShare)));
    // A few large calls cost Redis less than many small ones.
    const wanted = Math.min(eventsTogether, limit, fresh.length - from);
    await waitForRoom(services.producer, { wanted, limit, memoryHighWater: limits.memoryHighWater }, { wait, signal });
    const queued = await services.producer.enqueueNumbered(fresh.slice(from, from + wanted));
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
    reason: `Redis uses ${toPercent(share)} of its maxmemory; an import waits above ${toPercent(limit)}`,
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
