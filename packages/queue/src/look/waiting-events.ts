import type { Redis } from "ioredis";
import { queueKeys } from "../events/queue-name.ts";
import { lists } from "../operate/read-queued-events.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/** The events of each partner that were in the queue. */
export interface WaitingEvents {
  ofPartners: Map<string, { events: number; oldestId: string }>;
  /** Whether all events were looked at. Otherwise there may be more, and of those that failed or are held, older ones. */
  isComplete: boolean;
}

/** In each list of a shard. Small enough that others wait for Redis about a millisecond. */
const maxLooked = 1_000;

/**
 * Counts the events of each partner among those that have been longest in a list, and finds the one with the smallest
 * id, which begins with the time of receipt.
 *
 * KEYS: the list or sorted set.
 * ARGV: whether it is sorted (1), how many to look at, the prefix of job keys.
 * Returns the size of the list, and then of each partner its id, how many events it has, and the smallest id.
 */
const lookScript = defineScript(`
local isSorted, looked = ARGV[1] == '1', tonumber(ARGV[2])
local total = isSorted and redis.call('ZCARD', KEYS[1]) or redis.call('LLEN', KEYS[1])
-- The oldest of a list is its last.
local page = isSorted and redis.call('ZRANGE', KEYS[1], 0, looked - 1) or redis.call('LRANGE', KEYS[1], -looked, -1)
local counts, oldest, partners = {}, {}, {}
for _, id in ipairs(page) do
  local subject = redis.pcall('HMGET', ARGV[3] .. id, 'subject')[1]
  local partner = type(subject) == 'string' and string.match(subject, '^([^ :]+) ')
  if partner then
    if not counts[partner] then
      counts[partner], oldest[partner] = 0, id
      partners[#partners + 1] = partner
    end
    counts[partner] = counts[partner] + 1
    if id < oldest[partner] then oldest[partner] = id end
  end
end
local answer = { total }
for _, partner in ipairs(partners) do
  answer[#answer + 1] = partner
  answer[#answer + 1] = counts[partner]
  answer[#answer + 1] = oldest[partner]
end
return answer
`);

/**
 * Looks at a limited part of each shard, so that the cost does not depend on how many events wait.
 *
 * @throws what ioredis throws
 */
export async function findWaiting(shards: readonly { redis: Redis; prefix: string }[]): Promise<WaitingEvents> {
  const waiting: WaitingEvents = { ofPartners: new Map(), isComplete: true };
  const looks = shards.flatMap(({ redis, prefix }) =>
    lists.map(({ name, isSorted }) => {
      const key = queueKeys(prefix);
      const args = [isSorted ? 1 : 0, maxLooked, key("")];
      return runScript<[number, ...(string | number)[]]>(redis, lookScript, [key(name)], args);
    }),
  );
  for (const [total, ...found] of await Promise.all(looks)) {
    if (total > maxLooked) waiting.isComplete = false;
    for (let at = 0; at < found.length; at += 3) add(waiting.ofPartners, found.slice(at, at + 3));
  }
  return waiting;
}

function add(ofPartners: WaitingEvents["ofPartners"], [partner, count, id]: (string | number)[]): void {
  const { events, oldestId } = ofPartners.get(String(partner)) ?? { events: 0, oldestId: String(id) };
  const smallest = String(id) < oldestId ? String(id) : oldestId;
  ofPartners.set(String(partner), { events: events + Number(count), oldestId: smallest });
}
