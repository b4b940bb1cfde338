import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** From when to when the row was locked, by the clock of `performance.now()`. */
export interface Hold {
  fromMs: number;
  toMs: number;
}

const holdMs = 8_000;
const freeMs = 2_000;
const lookIntervalMs = 100;

/** Locks a booking's row as somebody does who forgets a transaction in psql, lets it go and takes it again, until told to stop. */
export async function holdBooking(options: {
  databaseUrl: string;
  partner: string;
  reference: string;
  signal: AbortSignal;
}): Promise<Hold[]> {
  const { databaseUrl, partner, reference, signal } = options;
  const client = new pg.Client({ connectionString: databaseUrl });
  // Whoever runs a query is told, too.
  client.on("error", () => {});
  await client.connect();
  const holds: Hold[] = [];
  const pause = (forMs: number) => sleep(forMs, undefined, { signal }).catch(() => {});
  try {
    while (!signal.aborted) {
      await client.query("begin");
      const locked = await client.query("select from bookings where partner = $1 and reference = $2 for update", [
        partner,
        reference,
      ]);
      const fromMs = performance.now();
      // It is not there before its first event is applied.
      const isLocked = locked.rowCount === 1;
      if (isLocked) await pause(holdMs);
      if (isLocked) holds.push({ fromMs, toMs: performance.now() });
      await client.query("rollback");
      await pause(isLocked ? freeMs : lookIntervalMs);
    }
    return holds;
  } finally {
    await client.end();
  }
}
