import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/**
 * What belongs to the queue and not to one of its shards. It is recorded in shard 0, which every queue has. Each other
 * shard has a copy of its own, since the script that takes events reads only keys of its shard. Both are in BullMQ's hash
 * `meta`, of which that script reads a field anyway.
 *
 * Whoever changes the record writes shard 0 first, and then the copies that it knows. A worker takes events of a shard
 * only after it has compared the copy with the record, and goes on to compare them. So a change is complete once shard 0
 * has it, and holds for shards that are added later.
 */
export interface QueueRecord {
  /** The id of the database to which workers apply the queue's events. Null: to none yet. */
  database: string | null;
  /** Whether an operator has paused the queue. */
  isPaused: boolean;
}

/** The field of `meta`. BullMQ has the field `paused`. */
export const databaseField = "database";

/** @throws what ioredis throws */
export async function readRecord(redis: Redis, prefix: string): Promise<QueueRecord> {
  const [database = null, paused = null] = await redis.hmget(queueKeys(prefix)("meta"), databaseField, "paused");
  return { database, isPaused: paused !== null };
}

/**
 * KEYS: the queue's meta.
 * ARGV: the id of a database.
 * Returns the id of the database that is recorded now.
 */
const claimScript = defineScript(`
redis.call('HSETNX', KEYS[1], '${databaseField}', ARGV[1])
return redis.call('HGET', KEYS[1], '${databaseField}')
`);

/**
 * Records the database if none is recorded. Of several that do so at once, one wins.
 *
 * @returns the database that is recorded now
 * @throws what ioredis throws
 */
export function claimQueue(redis: Redis, prefix: string, database: string): Promise<string> {
  return runScript<string>(redis, claimScript, [queueKeys(prefix)("meta")], [database]);
}

/**
 * While the queue is paused, no worker is woken, and the marker goes, as by BullMQ's own script.
 *
 * KEYS: the queue's meta and marker.
 * ARGV: the id of a database, or nothing to leave it as it is; 1 to pause the queue, 0 to resume it, or nothing.
 */
const changeScript = defineScript(`
${wakeWorkersInLua}
local meta, marker = unpack(KEYS)
if ARGV[1] ~= '' then redis.call('HSET', meta, '${databaseField}', ARGV[1]) end
if ARGV[2] == '1' then
  redis.call('HSET', meta, 'paused', 1)
  redis.call('ZREM', marker, '0')
elseif ARGV[2] == '0' then
  redis.call('HDEL', meta, 'paused')
end
wakeWorkers(meta, marker)
`);

/**
 * Changes the record, in shard 0, or its copy in another shard.
 *
 * @throws what ioredis throws
 */
export async function changeRecord(redis: Redis, prefix: string, change: Partial<QueueRecord>): Promise<void> {
  const keys = ["meta", "marker"].map(queueKeys(prefix));
  const paused = change.isPaused === undefined ? "" : Number(change.isPaused);
  await runScript(redis, changeScript, keys, [change.database ?? "", paused]);
}

/** Says in one sentence why processes with this database must not use the queue, and what to do. */
export function describeOtherDatabase(recorded: string, { id, isEmpty }: { id: string; isEmpty: boolean }): string {
  return (
    `The queue has fed the database ${recorded}, but DATABASE_URL leads to ${isEmpty ? "an empty one" : "another one"}, ` +
    `${id}: correct DATABASE_URL, PostgreSQL's volume or QUEUE_PREFIX, or let the queue feed this database from now on: ` +
    "ops queue attach"
  );
}
