import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { inTransaction, type Queryable } from "./database.ts";

/** How long a standby may take to answer, and to replay what the primary had when the question came. */
const catchUpMs = 200;
const lookIntervalMs = 10;
/** A standby that failed, or was behind, is left alone for this long. */
const avoidMs = 5_000;

/** Reads as if from the primary. */
export interface CurrentReader {
  /**
   * Runs read-only queries, on the standby or on the primary.
   *
   * @param read may run twice. Its statements are of one transaction on the standby, and of one each on the primary
   * @throws if the primary does not answer, or `read` fails there
   */
  read<Result>(read: (client: Queryable) => Promise<Result>): Promise<Result>;
  /** Whether the primary answers everything, because the standby has failed or is behind. */
  isStandbyAvoided(): boolean;
}

/**
 * Reads from a standby what the primary had committed before the question came: the standby must have replayed the
 * primary's WAL up to its position at that time. If the standby fails, or is too far behind, the primary answers. So a
 * standby takes load off the primary, and no answer is older than the primary's.
 *
 * @param standby undefined: read from the primary
 */
export function createCurrentReader(primary: pg.Pool, standby: pg.Pool | undefined): CurrentReader {
  let avoidUntilMs = 0;
  const isStandbyAvoided = () => performance.now() < avoidUntilMs;
  const readPosition = shareNext(async () => {
    const { rows } = await primary.query<Position>(
      `select pg_current_wal_flush_lsn()::text as lsn, ${timelineOfServer} as timeline`,
    );
    return rows[0] as Position;
  });

  async function readFromStandby<Result>(
    pool: pg.Pool,
    read: (client: Queryable) => Promise<Result>,
    position: Position,
  ): Promise<Result> {
    const tooLate = new AbortController();
    const timer = setTimeout(() => tooLate.abort(new Error("The standby is behind, or does not answer.")), catchUpMs);
    const { promise: expired, reject } = Promise.withResolvers<never>();
    tooLate.signal.addEventListener("abort", () => reject(tooLate.signal.reason), { once: true });
    const reading = inTransaction(pool, async (client) => {
      await untilReplayed(client, position, tooLate.signal);
      clearTimeout(timer);
      return read(client);
    });
    try {
      return await Promise.race([reading, expired]);
    } finally {
      clearTimeout(timer);
      reading.catch(() => {});
    }
  }

  return {
    isStandbyAvoided,
    async read(read) {
      if (standby === undefined || isStandbyAvoided()) return read(primary);
      try {
        return await readFromStandby(standby, read, await readPosition());
      } catch {
        // Some managed servers do not tell their position either.
        avoidUntilMs = performance.now() + avoidMs;
        return read(primary);
      }
    },
  };
}

/** A place in the primary's WAL. */
interface Position {
  lsn: string;
  timeline: number;
}

/**
 * The timeline of a server's WAL in SQL. Each promotion begins another one, in which the same place has other content. A
 * server that was ahead of the promoted one has not followed it. A standby that follows tells the new timeline from its
 * next restart point on; until then the primary answers.
 */
export const timelineOfServer = `case when pg_is_in_recovery() then (select timeline_id from pg_control_checkpoint())
  else ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer end`;

async function untilReplayed(client: Queryable, position: Position, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    // A standby that was promoted has no position of replay any more.
    const { rows } = await client.query<{ isCurrent: boolean }>(
      `select ${timelineOfServer} = $2 and $1::pg_lsn <= case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
         else pg_current_wal_flush_lsn() end as "isCurrent"`,
      [position.lsn, position.timeline],
    );
    if (rows[0]?.isCurrent === true) return;
    await sleep(lookIntervalMs);
  }
}

/**
 * Concurrent callers share a question, so there are at most two at a time. A caller never gets the answer to a question
 * that was asked before the call.
 */
function shareNext<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let asking: Promise<unknown> = Promise.resolve();
  let next: Promise<Answer> | undefined;
  return () => {
    next ??= asking.then(() => {
      const answer = ask();
      asking = answer.catch(() => {});
      next = undefined;
      return answer;
    });
    return next;
  };
}
