import { check } from "@booking-events/chaos/check";
import { createPool } from "@booking-events/chaos/database";
import { followDatabase } from "@booking-events/chaos/follow-database";
import { type Intent, inventHistories, partners } from "@booking-events/chaos/histories";
import { EventLoad } from "@booking-events/chaos/post-events";
import { createRandom } from "@booking-events/chaos/random";
import { readDatabase } from "@booking-events/chaos/read-database";
import { QueueWatch } from "@booking-events/chaos/watch-queue";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";

const sendOptions = {
  // A busy machine may be slow.
  answerTimeoutMs: 10_000,
  maxAttempts: 9,
  maxConnections: 50,
  maxUnderWay: 5_000,
  mayBeLimited: false,
};
const seed = 1;
export const duplicateWindowMs = 72 * 3_600_000;
/** Longer than the events of a killed worker stay with it. */
const standstillMs = 60_000;

export type SteadyLoad = ReturnType<typeof startLoad>;

/**
 * Posts at a fixed rate until it is stopped.
 *
 * @param options.intents at least `count` events to post; by default, the random histories of the chaos run
 * @param options.secretOf as {@link writeLoadPartners} returns it
 * @param options.environment of the apps
 */
export function startLoad(options: {
  ingestUrls: readonly string[];
  authority?: string;
  secretOf: (partner: string) => string;
  environment: Record<string, string>;
  queuePrefix?: string;
  perSecond: number;
  intents?: Iterator<Intent>;
  count?: number | undefined;
}) {
  const { environment, perSecond, queuePrefix = "{booking-events}", ...target } = options;
  const { intents = inventHistories(createRandom(seed, "histories")), count = Number.POSITIVE_INFINITY } = options;
  const pool = createPool(environment["DATABASE_URL"] ?? "");
  const queue = new QueueWatch(async () => [{ redisUrl: environment["REDIS_URL"] ?? "", prefix: queuePrefix }]);
  const [posting, following] = [new AbortController(), new AbortController()];
  const follower = followDatabase(pool, following.signal);
  const load = new EventLoad({
    ...target,
    perSecond,
    count,
    sendOptions,
    signal: posting.signal,
    next: () => ({ ...intents.next().value, attempts: [] }),
  });

  return {
    /** What was sent so far, and what came of it. */
    posts: load.posts,
    countAcknowledged: () => load.acknowledged,
    /** Sends nothing more, and waits for the answers and until the queue is empty. */
    async stop(): Promise<void> {
      posting.abort();
      await load.done;
      const left = await queue.untilEmpty(() => follower.seen.applied, standstillMs, following.signal);
      if (left !== undefined) throw new Error(`The queue did not become empty: ${left}`);
    },
    /** Compares what partners were told with what is in PostgreSQL, and that with the oracle. */
    async judge() {
      await follower.finish();
      const database = await readDatabase(pool);
      return check({ posts: load.posts, database, followedChangeIds: follower.seen.changeIds, duplicateWindowMs });
    },
    async close(): Promise<void> {
      posting.abort();
      following.abort();
      await Promise.all([load.done, queue.close()]);
      await pool.end();
    },
  };
}

/** @returns the secret of each partner that posts */
export function writeLoadPartners(path: string): (partner: string) => string {
  const secretOf = writeNewPartners(path, Object.fromEntries(partners.map((id) => [id, noLimit])));
  return (partner) => secretOf[partner] ?? "";
}
