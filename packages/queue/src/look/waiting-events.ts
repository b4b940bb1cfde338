import type { Redis } from "ioredis";
import { countList, type List, lists } from "../events/lists.ts";
import { queueKeys } from "../events/queue-name.ts";

/** The events of each partner that were in the queue. */
export interface WaitingEvents {
  ofPartners: Map<string, { events: number; oldestId: string }>;
  /** Whether all events were looked at. Otherwise there may be more, and of those that failed or are held, older ones. */
  isComplete: boolean;
}

/** In each list of a shard. */
const maxLooked = 1_000;

/**
 * Looks at a limited part of each shard, so that the cost does not depend on how many events wait. Without a script,
 * which Redis would only run for who may write.
 *
 * @throws what ioredis throws
 */
export async function findWaiting(shards: readonly { redis: Redis; prefix: string }[]): Promise<WaitingEvents> {
  const waiting: WaitingEvents = { ofPartners: new Map(), isComplete: true };
  const looks = shards.flatMap((shard) => lists.map((list) => lookInto(shard, list)));
  for (const { total, jobs } of await Promise.all(looks)) {
    if (total > maxLooked) waiting.isComplete = false;
    for (const job of jobs) add(waiting.ofPartners, job);
  }
  return waiting;
}

/** Those that have been in the list for longest. */
async function lookInto(
  { redis, prefix }: { redis: Redis; prefix: string },
  list: List,
): Promise<{ total: number; jobs: { id: string; subject: string | null }[] }> {
  const keyOf = queueKeys(prefix);
  const key = keyOf(list.name);
  const [total, ids] = await Promise.all([
    countList(redis, prefix, list),
    // The oldest of a list is its last.
    list.isSorted ? redis.zrange(key, "0", String(maxLooked - 1)) : redis.lrange(key, -maxLooked, -1),
  ]);
  if (ids.length === 0) return { total, jobs: [] };
  const pipeline = redis.pipeline();
  for (const id of ids) pipeline.hmget(keyOf(id), "subject");
  const answers = (await pipeline.exec()) ?? [];
  return {
    total,
    // Another program may have put anything in the place of a job.
    jobs: answers.map(([error, values], index) => ({
      id: ids[index] ?? "",
      subject: error === null ? ((values as (string | null)[])[0] ?? null) : null,
    })),
  };
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function add(ofPartners: WaitingEvents["ofPartners"], { id, subject }: { id: string; subject: string | null }): void {
  const partner = /^([^ :]+) /.exec(subject ?? "")?.[1];
  if (partner === undefined || !uuidPattern.test(id)) return;
  const { events, oldestId } = ofPartners.get(partner) ?? { events: 0, oldestId: id };
  ofPartners.set(partner, { events: events + 1, oldestId: id < oldestId ? id : oldestId });
}
