import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { connect } from "./database.ts";

/** From when to when a row was locked, by `performance.now()`. */
export interface Hold {
  fromMs: number;
  toMs: number;
}

const pauseWithoutRowMs = 100;

/**
 * Until the signal aborts, locks a booking's row for a while, again and again, as somebody does who forgets a
 * transaction in psql. PostgreSQL may be killed or frozen meanwhile.
 *
 * @param options.which the part of the query that chooses the row
 */
export async function lockRows(options: {
  databaseUrl: string;
  which: string;
  holdMs: () => number;
  pauseMs: () => number;
  signal: AbortSignal;
}): Promise<Hold[]> {
  const { databaseUrl, which, holdMs, pauseMs, signal } = options;
  const pause = (forMs: number) => sleep(forMs, undefined, { signal }).catch(() => {});
  const holds: Hold[] = [];
  while (!signal.aborted) {
    const isHeld = await hold().catch(() => false);
    await pause(isHeld ? pauseMs() : pauseWithoutRowMs);
  }
  return holds;

  async function hold(): Promise<boolean> {
    let client: pg.Client | undefined;
    try {
      client = await connect(databaseUrl);
      await client.query("begin");
      const { rowCount } = await client.query(`select from bookings ${which} for update`);
      if (rowCount !== 1) return false;
      const fromMs = performance.now();
      await pause(holdMs());
      holds.push({ fromMs, toMs: performance.now() });
      return true;
    } finally {
      // This rolls back. A frozen server does not answer, so nobody waits for it.
      client?.end().catch(() => {});
    }
  }
}
