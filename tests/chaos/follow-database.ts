import { repeat } from "@booking-events/runtime";
import type pg from "pg";

const feedIntervalMs = 250;
const appliedIntervalMs = 50;
const workerConnections = `select pid || ' ' || backend_start as name, ssl
  from pg_stat_activity join pg_stat_ssl using (pid) where application_name = 'booking-events-worker'`;

/** Reads the feed as a consumer does: it asks again and again for the changes after the last id that it has seen. */
export function followDatabase(pool: pg.Pool, signal: AbortSignal) {
  const seen = {
    /** Ids of `booking_changes`, in the order in which they were read. */
    changeIds: [] as number[],
    /** By booking: when its erasure was first seen, by this machine's clock. */
    erasedAtMs: new Map<string, number>(),
    /** Events in the log at the last look. */
    applied: 0,
    /** When that was seen to have grown, by `performance.now()`. */
    appliedAtMs: [] as number[],
    /** All connections that workers have had. */
    workerConnections: { tls: new Set<string>(), plain: new Set<string>() },
  };
  const finish = follow(feedIntervalMs, signal, async () => {
    const changes = await pool.query<{ id: number; bookingId: string; change: string }>(
      `select id::float8, booking_id as "bookingId", change from booking_changes where id > $1 order by id`,
      [seen.changeIds.at(-1) ?? 0],
    );
    for (const { id, bookingId, change } of changes.rows) {
      seen.changeIds.push(id);
      if (change === "erased") seen.erasedAtMs.set(bookingId, Date.now());
    }
    const log = await pool.query<{ count: number }>("select count(*)::float8 from booking_events");
    const applied = log.rows[0]?.count ?? 0;
    if (applied > seen.applied) seen.appliedAtMs.push(performance.now());
    seen.applied = applied;
    const connections = await pool.query<{ name: string; ssl: boolean }>(workerConnections);
    for (const { name, ssl } of connections.rows) seen.workerConnections[ssl ? "tls" : "plain"].add(name);
  });
  return { seen, finish };
}

/** Notes when each of the events that it is told to expect becomes visible in PostgreSQL. */
export function watchApplied(pool: pg.Pool, signal: AbortSignal) {
  const expected = new Set<string>();
  /** By event id, by `performance.now()`. */
  const seenAtMs = new Map<string, number>();
  const finish = follow(appliedIntervalMs, signal, async () => {
    if (expected.size === 0) return;
    const select = "select id from booking_events where id = any($1)";
    const { rows } = await pool.query<{ id: string }>(select, [[...expected]]);
    for (const { id } of rows) {
      seenAtMs.set(id, performance.now());
      expected.delete(id);
    }
  });
  return { seenAtMs, expect: (eventId: string) => void expected.add(eventId), finish };
}

/** @returns looks one last time, and ends */
function follow(intervalMs: number, signal: AbortSignal, look: () => Promise<void>): () => Promise<void> {
  const stopping = new AbortController();
  // Some faults take PostgreSQL away, and a look fails.
  const tryToLook = () => look().catch(() => {});
  const looking = repeat(tryToLook, intervalMs, AbortSignal.any([signal, stopping.signal]));
  return async () => {
    stopping.abort();
    await looking;
    await look();
  };
}
