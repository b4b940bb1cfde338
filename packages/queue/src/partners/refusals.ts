import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** A request that ingest refused. It holds nothing that the sender wrote. */
export interface RecordedRefusal {
  requestId: string;
  at: Date;
  /** Null: of a sender without a known secret. */
  partner: string | null;
  secretId: string | null;
  /** The kind in the path; null: no such path. */
  kind: string | null;
  status: number;
  /** Why, such as `invalid-data`. */
  code: string;
  /** Fields of the contract and the rules that they violated, such as `consumerPhone:null`. */
  violations: string[];
  /** The partner and a digest of the booking's reference: see `subjectOf`. Undefined: it could not be read. */
  subject?: string | undefined;
  ip: string | null;
}

export const refusalLimits = {
  /** For each partner, and for all senders without a known secret together. */
  maxStored: 250,
  /** Of JSON. With longer addresses or more violations than occur, an entry is left out. */
  maxBytes: 1_024,
  /** Addresses are personal data. */
  maxAgeMs: 7 * 24 * 60 * 60 * 1_000,
};

/** The partner of senders without a known secret. No partner has this id. */
const strangers = "*";

/**
 * Adds each refusal to its partner's stream, which is cut to the newest ones and expires when nothing is added.
 *
 * KEYS: a sorted set of the partners that have a stream.
 * ARGV: the prefix of streams' keys, how many entries and milliseconds a stream keeps; then for each refusal its partner
 * and its JSON.
 */
const addScript = defineScript(`
local prefix, maxStored, maxAgeMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = string.format('%.0f', now - maxAgeMs)
for place = 4, #ARGV, 2 do
  local stream = prefix .. ARGV[place]
  redis.call('XADD', stream, 'MAXLEN', maxStored, '*', 'refusal', ARGV[place + 1])
  redis.call('XTRIM', stream, 'MINID', oldest)
  redis.call('PEXPIRE', stream, maxAgeMs)
  redis.call('ZADD', KEYS[1], now, ARGV[place])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', oldest)
redis.call('PEXPIRE', KEYS[1], maxAgeMs)
`);

export async function writeRefusals(redis: Redis, prefix: string, refusals: RecordedRefusal[]): Promise<void> {
  const entries = refusals.flatMap(({ partner, ...refusal }) => {
    const json = JSON.stringify(refusal);
    return Buffer.byteLength(json) > refusalLimits.maxBytes ? [] : [partner ?? strangers, json];
  });
  const { maxStored, maxAgeMs } = refusalLimits;
  if (entries.length > 0) {
    await runScript(redis, addScript, [indexKey(prefix)], [streamKey(prefix, ""), maxStored, maxAgeMs, ...entries]);
  }
}

/**
 * Reads the stored refusals since a time, newest first.
 *
 * @param options.partner only of this partner; null: only of senders without a known secret
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readRefusals(
  options: QueueLocation & { partner?: string | null | undefined; since: Date },
): Promise<RecordedRefusal[]> {
  const { prefix, partner, since } = options;
  return withConnection({ ...options, prefix: companionPrefix(prefix, "records") }, async (redis) => {
    const senders = partner === undefined ? await redis.zrange(indexKey(prefix), "0", "-1") : [partner ?? strangers];
    const found = await Promise.all(senders.map((sender) => readRefusalsOf(redis, prefix, sender)));
    return found
      .flat()
      .filter(({ at }) => at >= since)
      .sort((one, other) => other.at.getTime() - one.at.getTime());
  });
}

/** Reads what is stored of a partner, in the order in which it was written, newest first. */
export async function readRefusalsOf(redis: Redis, prefix: string, sender: string): Promise<RecordedRefusal[]> {
  const entries = await redis.xrevrange(streamKey(prefix, sender), "+", "-");
  const oldestMs = Date.now() - refusalLimits.maxAgeMs;
  const refusals = entries.map(([, [, json = ""]]) => {
    // Only ingest writes this stream.
    const { at, ...refusal } = JSON.parse(json) as Omit<RecordedRefusal, "partner" | "at"> & { at: string };
    return { ...refusal, at: new Date(at), partner: sender === strangers ? null : sender };
  });
  return refusals.filter(({ at }) => at.getTime() >= oldestMs);
}

function streamKey(prefix: string, sender: string): string {
  return `${companionPrefix(prefix, "records")}:refusals:of:${sender}`;
}

function indexKey(prefix: string): string {
  return `${companionPrefix(prefix, "records")}:refusals:partners`;
}
