import type { Queryable } from "../connect/queryable.ts";

/** What the database says about the time. */
export interface DatabaseTimes {
  /** How far PostgreSQL's clock is ahead of this host's. It is wrong by at most half of the time the answer took. */
  clockAheadMs: number;
  /** When the newest event of the log was received, by Redis' clock, in milliseconds since 1970; null: there is none. */
  newestEventMs: number | null;
}

export async function readDatabaseTimes(client: Queryable): Promise<DatabaseTimes> {
  const clockAheadMs = await measureDatabaseClock(client);
  const { rows } = await client.query<{ sequence: number }>(
    "select sequence::float8 as sequence from booking_events order by id desc limit 1",
  );
  return { clockAheadMs, newestEventMs: rows[0] === undefined ? null : rows[0].sequence / 1_000 };
}

/** As `clockAheadMs` above. */
export async function measureDatabaseClock(client: Queryable): Promise<number> {
  const startedAtMs = performance.now();
  const { rows } = await client.query<{ ms: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms",
  );
  return (rows[0]?.ms ?? Number.NaN) - (Date.now() - (performance.now() - startedAtMs) / 2);
}
