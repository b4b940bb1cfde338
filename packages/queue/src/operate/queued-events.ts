import { isTestSubject } from "../events/event-subject.ts";
import { queueKeys, retryingName } from "../events/queue-name.ts";
import { connectToRedis, type QueueLocation } from "../redis/connect-to-redis.ts";
import { parseInfo } from "../redis/durability.ts";
import { type ReplicaRewrite, rewriteAppendOnlyFile, rewriteOnReplicas } from "../redis/rewrite-append-only-files.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { findShardCount, type ShardedQueue } from "../shards/for-each-shard.ts";
import { locateShard, shardNumbers } from "../shards/shards.ts";

export interface QueuedJob {
  shard: number;
  jobId: string;
  /** The unchanged text from Redis: usually an envelope. */
  text: string;
  /** Its subject is that of a test partner's event. */
  isTest: boolean;
}

export interface Rewritten {
  /** Why a primary could not rewrite its file; undefined if all have. */
  problem: string | undefined;
  replicas: ReplicaRewrite[];
}

const keysPerScan = 1_000;
/** Events are read in groups of this many: at most 6.4 MB with the default limit of a body. */
const eventsPerRead = 100;
const connectTimeoutMs = 5_000;
const commandTimeoutMs = 10_000;

/**
 * KEYS: the queue's active, wait, delayed, failed, prioritized, retrying, stalled; the job and its lock.
 * ARGV: the job's id.
 * Returns 1 if the job was removed.
 */
const takeOutScript = defineScript(`
local active, wait, delayed, failed, prioritized, retrying, stalled, job, lock = unpack(KEYS)
local id = ARGV[1]
if redis.call('EXISTS', lock) == 1 or redis.call('LPOS', active, id) then return 0 end
redis.call('LREM', wait, 0, id)
for _, set in ipairs({ delayed, failed, prioritized, retrying }) do redis.call('ZREM', set, id) end
redis.call('SREM', stalled, id)
local removed = redis.call('DEL', job)
redis.call('DEL', job .. ':logs', job .. ':dependencies', job .. ':processed', job .. ':failed', job .. ':unsuccessful')
return removed
`);

export type QueuedEvents = Awaited<ReturnType<typeof openQueuedEvents>>;

/**
 * Opens all shards of the queue, to read all of it, and to take single events out of it. For operators.
 *
 * @throws what ioredis throws if the Redis of shard 0 does not answer
 */
export async function openQueuedEvents(queue: ShardedQueue) {
  const shards = shardNumbers(await findShardCount(queue)).map((shard) => openShard(locateShard(queue, shard), shard));
  return {
    async check() {
      await Promise.all(shards.map((shard) => shard.readRunId()));
    },
    /**
     * Reads each event that is in the queue from the beginning to the end, whatever its state is and however that
     * changes. Events may be read twice.
     */
    async *read() {
      for (const shard of shards) yield* shard.read();
    },
    /**
     * Finds the bookings of a partner that have events in the queue: their subjects. An event that was in the queue when
     * this began, and leaves it meanwhile, may be missed.
     *
     * @param limit of the subjects, for memory
     * @returns null: there are more
     */
    async findSubjects(partner: string, limit: number): Promise<Set<string> | null> {
      const subjects = new Set<string>();
      for (const shard of shards)
        for await (const found of shard.readSubjects()) {
          for (const subject of found) if (subject.startsWith(`${partner} `)) subjects.add(subject);
          if (subjects.size > limit) return null;
        }
      return subjects;
    },
    /** @returns false if a worker holds the event at the moment, or if it has left the queue */
    takeOut: async ({ shard, jobId }: Pick<QueuedJob, "shard" | "jobId">) =>
      (await shards[shard]?.takeOut(jobId)) ?? false,
    /** Makes each Redis and its replicas rewrite their append-only files without what has left the queue. */
    async rewriteAppendOnlyFiles(): Promise<Rewritten> {
      const runIds = await Promise.all(shards.map((shard) => shard.readRunId()));
      const oneOfEachServer = shards.filter((_, shard) => runIds.indexOf(runIds[shard] ?? "") === shard);
      const results = await Promise.all(oneOfEachServer.map((shard) => shard.rewriteAppendOnlyFiles()));
      return {
        problem: results.find(({ problem }) => problem !== undefined)?.problem,
        replicas: results.flatMap(({ replicas }) => replicas),
      };
    },
    close() {
      for (const shard of shards) shard.close();
    },
  };
}

function openShard(location: QueueLocation, shard: number) {
  const { prefix } = location;
  const redis = connectToRedis(location, {
    connectionName: "booking-events-ops",
    maxRetriesPerRequest: 1,
    connectTimeout: connectTimeoutMs,
    commandTimeout: commandTimeoutMs,
  });
  // A failed command reports it.
  redis.on("error", () => {});
  const queueKey = queueKeys(prefix);
  const lists = ["active", "wait", "delayed", "failed", "prioritized", retryingName, "stalled"].map(queueKey);

  async function readEvents(jobIds: string[]): Promise<QueuedJob[]> {
    const jobs = await Promise.all(jobIds.map((jobId) => redis.hmget(queueKey(jobId), "data", "subject")));
    return jobIds.flatMap((jobId, index) => {
      const [text, subject] = jobs[index] ?? [];
      return typeof text === "string" ? [{ shard, jobId, text, isTest: isTestSubject(subject ?? "") }] : [];
    });
  }

  async function* scanJobIds(): AsyncGenerator<string[]> {
    const pattern = `${escapePattern(queueKey(""))}*`;
    for (let cursor = "0"; ; ) {
      const [next, keys] = await redis.scan(cursor, "MATCH", pattern, "COUNT", keysPerScan, "TYPE", "hash");
      yield keys.map((key) => key.slice(queueKey("").length)).filter((id) => !id.includes(":"));
      if (next === "0") return;
      cursor = next;
    }
  }

  return {
    /** Identifies the process of Redis, because several shards may be on one. */
    readRunId: async () => parseInfo(await redis.info("server")).get("run_id") ?? "",
    async *read() {
      for await (const jobIds of scanJobIds())
        for (let first = 0; first < jobIds.length; first += eventsPerRead)
          yield readEvents(jobIds.slice(first, first + eventsPerRead));
    },
    async *readSubjects() {
      for await (const jobIds of scanJobIds()) {
        const subjects = await Promise.all(jobIds.map((jobId) => redis.hget(queueKey(jobId), "subject")));
        yield subjects.filter((subject) => subject !== null);
      }
    },
    async takeOut(jobId: string) {
      const keys = [...lists, queueKey(jobId), queueKey(`${jobId}:lock`)];
      return (await runScript<number>(redis, takeOutScript, keys, [jobId])) === 1;
    },
    rewriteAppendOnlyFiles: async (): Promise<Rewritten> => ({
      problem: await rewriteAppendOnlyFile(redis),
      replicas: await rewriteOnReplicas(redis, location.redisServers),
    }),
    close: () => redis.disconnect(),
  };
}

function escapePattern(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}
