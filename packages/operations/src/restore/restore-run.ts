import { setTimeout as sleep } from "node:timers/promises";
import { EnqueueError, type NumberedEvent, type ShardedProducer } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { findProcessed, listDeadLetters } from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { type QueueingProgress, type QueueLimits, queueEvents } from "../import/queue-events.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withProducer } from "../services/queue.ts";

/** What has become of the events of a restore. */
export interface RestoreResults {
  queued: number;
  applied: number;
  /** A partner's newer event was applied first, and decides. */
  superseded: number;
  /** Of bookings that were erased meanwhile. */
  erased: number;
  dead: number;
  /** Not applied yet when the command ended. */
  waiting: number;
}

/** As long as workers apply some of the events, the rest is waited for. */
const patienceMs = 30_000;
const pollIntervalMs = 200;
const eventsTogether = 500;

const limits = {
  MAX_BACKLOG: variables.MAX_BACKLOG,
  REDIS_MEMORY_HIGH_WATER: variables.REDIS_MEMORY_HIGH_WATER,
};

/** Runs work that queues events, once Redis can store them safely. */
export async function withRestoreRun<Result>(
  context: Context,
  pool: Pool,
  work: (run: RestoreRun) => Promise<Result>,
): Promise<Result> {
  const { MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER } = parseEnvironment(limits, context.environment);
  const queueLimits = { maxBacklog: MAX_BACKLOG, memoryHighWater: REDIS_MEMORY_HIGH_WATER };
  return withProducer(context, "Nothing was restored.", (producer) =>
    work(new RestoreRun({ producer, pool, limits: queueLimits })),
  ).catch((error: unknown) => {
    if (!(error instanceof EnqueueError)) throw error;
    throw new OperationFailure("Redis did not take all events. Check that it runs, and run the same command again.", {
      cause: error,
    });
  });
}

/** Queues the events of a restore when there is room, and finds out what becomes of them. */
export class RestoreRun {
  readonly #services: { producer: ShardedProducer; pool: Pool; limits: QueueLimits };
  readonly #results: RestoreResults = { queued: 0, applied: 0, superseded: 0, erased: 0, dead: 0, waiting: 0 };
  #waiting: string[] = [];

  constructor(services: { producer: ShardedProducer; pool: Pool; limits: QueueLimits }) {
    this.#services = services;
  }

  async queue(events: NumberedEvent[], progress: QueueingProgress): Promise<void> {
    if (events.length === 0) return;
    await queueEvents(events, this.#services, this.#services.limits, progress);
    this.#results.queued += events.length;
    for (const { eventId } of events) this.#waiting.push(eventId);
  }

  /** @param signal ends the wait: everything is queued by then */
  async waitForResults(signal: AbortSignal | undefined): Promise<RestoreResults> {
    let giveUpAtMs = Date.now() + patienceMs;
    while (this.#waiting.length > 0 && Date.now() < giveUpAtMs && signal?.aborted !== true) {
      const before = this.#waiting.length;
      await this.#lookForResults();
      if (this.#waiting.length < before) giveUpAtMs = Date.now() + patienceMs;
      else await sleep(pollIntervalMs);
    }
    return { ...this.#results, waiting: this.#waiting.length };
  }

  /** Of the events that were queued first. They are applied first. */
  async #lookForResults(): Promise<void> {
    const { pool } = this.#services;
    const eventIds = this.#waiting.slice(0, eventsTogether);
    const outcomes = await findProcessed(pool, eventIds);
    const letters = await listDeadLetters(pool, { eventIds });
    const dead = new Set(letters.map(({ eventId }) => eventId).filter((id) => !outcomes.has(id)));
    for (const outcome of outcomes.values()) {
      if (outcome === "superseded") this.#results.superseded += 1;
      else if (outcome === "erased") this.#results.erased += 1;
      else this.#results.applied += 1;
    }
    this.#results.dead += dead.size;
    const left = eventIds.filter((id) => !outcomes.has(id) && !dead.has(id));
    this.#waiting = [...left, ...this.#waiting.slice(eventIds.length)];
  }
}
