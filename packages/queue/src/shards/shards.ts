import type { QueueLocation } from "../redis/connect-to-redis.ts";

/**
 * The queue consists of shards, each with a prefix and so a hash tag of its own: Redis Cluster stores a shard on one node
 * and can place each shard on another. Shard 0 has the prefix of the queue, as a queue with one shard has.
 */
export function shardPrefix(prefix: string, shard: number): string {
  return shard === 0 ? prefix : addToHashTag(prefix, String(shard));
}

export function locateShard<Location extends QueueLocation>(queue: Location, shard: number): Location {
  return { ...queue, prefix: shardPrefix(queue.prefix, shard) };
}

/**
 * What is kept in Redis beside the queue, each with a hash tag of its own: rate limits, and records of last uses, refusals
 * and warnings.
 */
type Companion = "limits" | "records";

export function companionPrefix(prefix: string, companion: Companion): string {
  return addToHashTag(prefix, companion);
}

function addToHashTag(prefix: string, name: string): string {
  return `${prefix.slice(0, -1)}-${name}}`;
}

const base64UrlDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * Returns the shard that stores an event, so that one Redis orders all events of a booking. The last two digits of the
 * subject's digest are enough for 4,096 shards.
 *
 * The number of shards is a power of two. So the shard of a booking in a smaller queue is also a shard of a larger queue,
 * and the shards of both are numbered alike.
 *
 * @param subject the result of `digestSubject`
 */
export function shardOf(subject: string, shardCount: number): number {
  const digest = subject.split(" ")[1] ?? "";
  const [high = "", low = ""] = digest.slice(-2);
  return (64 * base64UrlDigits.indexOf(high) + base64UrlDigits.indexOf(low)) % shardCount;
}

/** Returns the shards in which events with the subject are if the queue has, or had, up to this number of shards. */
export function shardsOf(subject: string, maxShardCount: number): number[] {
  const shards = new Set<number>();
  for (let shardCount = 1; shardCount <= maxShardCount; shardCount *= 2) shards.add(shardOf(subject, shardCount));
  return [...shards];
}

export function shardNumbers(shardCount: number): number[] {
  return Array.from({ length: shardCount }, (_, shard) => shard);
}

/** @returns such as `0-3, 7` */
export function formatShards(shards: number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const shard of shards.toSorted((one, other) => one - other)) {
    const range = ranges.at(-1);
    if (range !== undefined && range[1] === shard - 1) range[1] = shard;
    else ranges.push([shard, shard]);
  }
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(", ");
}

/**
 * Says which shards a sentence is about, unless there is only one. Shards on one server usually have the same problem.
 *
 * @param sentences those of each shard
 */
export function namingShards(sentences: readonly (readonly [shard: number, sentences: string[]])[]): string[] {
  if (sentences.length === 1) return sentences.flatMap(([, ofShard]) => ofShard);
  const bySentence = new Map<string, number[]>();
  for (const [shard, ofShard] of sentences)
    for (const sentence of ofShard) bySentence.set(sentence, [...(bySentence.get(sentence) ?? []), shard]);
  return [...bySentence].map(
    ([sentence, shards]) => `${shards.length === 1 ? "Shard" : "Shards"} ${formatShards(shards)}: ${sentence}`,
  );
}
