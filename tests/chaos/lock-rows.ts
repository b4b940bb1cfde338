import { setTimeout as sleep } from "node:timers/promises";
import { repeat } from "@booking-events/runtime";
import type pg from "pg";

/** From when to when a row was locked, by `performance.now()`. */
export interface Hold {
  fromMs: number;
  toMs: number;
}

const lookIntervalMs = 100;

/**
 * Until the signal aborts, locks a booking's row for a while, again and again, as somebody does who forgets a
 * transaction in psql. PostgreSQL may be killed or frozen meanwhile.
 *
 * @param options.which the part of the query that chooses the row
 */
export async function lockRows(options: {
  pool: pg.Pool;
  which: string;
  holdMs: () => number;
  pauseMs: () => number;
  signal: AbortSignal;
}): Promise<Hold[]> {
  const { pool, which, holdMs, pauseMs, signal } = options;
  const pause = (forMs: number) => sleep(forMs, undefined, { signal }).catch(() => {});
  const holds: Hold[] = [];
  await repeat(() => lockOnce().catch(() => {}), lookIntervalMs, signal);
  return holds;

  async function lockOnce(): Promise<void> {
    const client = await pool.connect();
    try {
      await client.query("begin");
      const { rowCount } = await client.query(`select from bookings ${which} for update`);
      if (rowCount !== 1) return;
      const fromMs = performance.now();
      await pause(holdMs());
      holds.push({ fromMs, toMs: performance.now() });
    } finally {
      // Closes the connection, and so rolls back.
      client.release(true);
    }
    await pause(pauseMs());
  }
}
