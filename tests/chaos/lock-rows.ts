import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Random } from "./random.ts";

const holdMs = { least: 200, most: 6_000 };
const pauseMs = { least: 500, most: 3_000 };
const connectTimeoutMs = 1_000;

/**
 * Until the signal aborts, locks the booking that was changed last, for a while, as somebody does in psql. PostgreSQL may
 * be killed or frozen meanwhile.
 *
 * @returns how often a row was locked
 */
export async function lockRows(options: { databaseUrl: string; random: Random; signal: AbortSignal }): Promise<number> {
  const { databaseUrl, random, signal } = options;
  const pause = ({ least, most }: typeof pauseMs) =>
    sleep(random.between(least, most), undefined, { signal }).catch(() => {});
  let locked = 0;
  while (!signal.aborted) {
    const client = new pg.Client({
      connectionString: databaseUrl,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: holdMs.most,
    });
    // Whoever runs a query is told, too.
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("begin");
      const row = await client.query("select from bookings order by updated_at desc limit 1 for update");
      locked += row.rowCount ?? 0;
      await pause(holdMs);
    } catch {
      // It is out: the next connection may find it again.
    }
    // Not waited for: a frozen server does not answer.
    client.end().catch(() => {});
    await pause(pauseMs);
  }
  return locked;
}
