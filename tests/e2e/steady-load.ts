import { check } from "@booking-events/chaos/check";
import { createPool } from "@booking-events/chaos/database";
import { followDatabase } from "@booking-events/chaos/follow-database";
import { inventHistories, partners } from "@booking-events/chaos/histories";
import { postEvents } from "@booking-events/chaos/post-events";
import { createRandom } from "@booking-events/chaos/random";
import { readDatabase } from "@booking-events/chaos/read-database";
import { watchQueue } from "@booking-events/chaos/watch-queue";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";

const sendOptions = {
  // A busy machine may be slow.
  answerTimeoutMs: 10_000,
  maxAttempts: 9,
  maxConnections: 50,
  maxUnderWay: 5_000,
  mayBeLimited: false,
};
const duplicateWindowMs = 72 * 3_600_000;
/** Longer than the events of a killed worker stay with it. */
const standstillMs = 60_000;

export type SteadyLoad = ReturnType<typeof startLoad>;

/**
 * Posts the random histories of the chaos run at a fixed rate, until it is stopped.
 *
 * @param options.environment of the apps; `PARTNERS_FILE` is replaced by {@link writeLoadPartners}
 */
export function startLoad(options: {
  ingestUrls: readonly string[];
  authority?: string;
  secretOf: (partner: string) => string;
  environment: Record<string, string>;
  queuePrefix?: string;
  perSecond: number;
  seed: number;
}) {
  const { environment, perSecond, seed, queuePrefix = "{booking-events}", ...target } = options;
  const pool = createPool(environment["DATABASE_URL"] ?? "");
  const queue = watchQueue(environment["REDIS_URL"] ?? "", queuePrefix);
  const [posting, following] = [new AbortController(), new AbortController()];
  const follower = followDatabase(pool, following.signal);
  const histories = inventHistories(createRandom(seed, "histories"));
  const load = postEvents({
    ...{ ...target, perSecond, sendOptions, signal: posting.signal },
    next: () => ({ ...histories.next().value, attempts: [] }),
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
