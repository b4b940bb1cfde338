import { setTimeout as sleep } from "node:timers/promises";
import { queueName } from "@booking-events/queue";
import { Queue } from "bullmq";
import { Redis } from "ioredis";

/** An event in any of these is still in the queue. */
const states = ["waiting", "active", "delayed", "prioritized", "waiting-children", "failed"] as const;
const commandTimeoutMs = 2_000;
const lookIntervalMs = 500;
/** How long the queue must stay empty: an add that was under way when its ingest was frozen may still come. */
const emptyForMs = 2_000;

/** Where a shard of the queue is. */
interface Shard {
  redisUrl: string;
  prefix: string;
}

export class QueueWatch {
  readonly #locate: () => Promise<Shard[]>;
  readonly #connections = new Map<string, Redis>();
  readonly #queues = new Map<string, Queue>();

  /** @param locate tells where the shards are now */
  constructor(locate: () => Promise<Shard[]>) {
    this.#locate = locate;
  }

  /** Events in the queue; undefined: Redis does not answer. */
  async size(): Promise<number | undefined> {
    return (await this.#look()).size;
  }

  /**
   * Waits until nothing is left in the queue, however long that takes, as long as something changes.
   *
   * @param countApplied rises with each event that is applied
   * @param standstillMs longer than the longest delay of a retry
   * @returns undefined, or a sentence that says what is left when nothing has changed for so long
   */
  async untilEmpty(countApplied: () => number, standstillMs: number, signal: AbortSignal): Promise<string | undefined> {
    let last = "";
    let changedAtMs = performance.now();
    for (;;) {
      const { size, left } = await this.#look();
      const seen = `${left} ${countApplied()}`;
      if (seen !== last) changedAtMs = performance.now();
      last = seen;
      const unchangedForMs = performance.now() - changedAtMs;
      if (size === 0 && unchangedForMs >= emptyForMs) return undefined;
      if (unchangedForMs >= standstillMs) return `nothing changed for ${standstillMs / 1_000} s; left: ${left}`;
      await sleep(lookIntervalMs, undefined, { signal });
    }
  }

  async close(): Promise<void> {
    for (const queue of this.#queues.values()) await queue.close();
    for (const connection of this.#connections.values()) connection.disconnect();
  }

  async #look(): Promise<{ size: number | undefined; left: string }> {
    try {
      const shards = await this.#locate();
      const counts = await Promise.all(shards.map((shard) => this.#open(shard).getJobCounts(...states)));
      const totals = Object.fromEntries(
        states.map((state) => [state, counts.reduce((sum, count) => sum + (count[state] ?? 0), 0)]),
      );
      return { size: Object.values(totals).reduce((sum, count) => sum + count, 0), left: JSON.stringify(totals) };
    } catch {
      return { size: undefined, left: "Redis does not answer" };
    }
  }

  #open({ redisUrl, prefix }: Shard): Queue {
    const name = `${redisUrl} ${prefix}`;
    const opened = this.#queues.get(name);
    if (opened !== undefined) return opened;
    const skips = { skipWaitingForReady: true, skipVersionCheck: true, skipMetasUpdate: true };
    const queue = new Queue(queueName, { connection: this.#connect(redisUrl), prefix, ...skips });
    this.#queues.set(
      name,
      queue.on("error", () => {}),
    );
    return queue;
  }

  #connect(redisUrl: string): Redis {
    const connected = this.#connections.get(redisUrl);
    if (connected !== undefined) return connected;
    const connection = new Redis(redisUrl, {
      commandTimeout: commandTimeoutMs,
      maxRetriesPerRequest: 1,
      retryStrategy: () => 200,
    });
    this.#connections.set(
      redisUrl,
      connection.on("error", () => {}),
    );
    return connection;
  }
}
