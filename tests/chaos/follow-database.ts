import { keepAsking } from "./database.ts";

const lookIntervalMs = 250;
const workerConnections = `select pid || ' ' || backend_start as name, ssl
  from pg_stat_activity join pg_stat_ssl using (pid) where application_name = 'booking-events-worker'`;

/** Reads the feed as a consumer does: it asks again and again for the changes after the last id that it has seen. */
export function followDatabase(databaseUrl: string) {
  const seen = {
    /** Ids of `booking_changes`, in the order in which they were read. */
    changeIds: [] as number[],
    /** Events in the log at the last look. */
    applied: 0,
    /** All connections that workers have had. */
    workerConnections: { tls: new Set<string>(), plain: new Set<string>() },
  };
  const { finish, stop } = keepAsking(databaseUrl, lookIntervalMs, async (client) => {
    const changes = await client.query<{ id: number }>(
      "select id::float8 from booking_changes where id > $1 order by id",
      [seen.changeIds.at(-1) ?? 0],
    );
    for (const { id } of changes.rows) seen.changeIds.push(id);
    const log = await client.query<{ count: number }>("select count(*)::float8 from booking_events");
    seen.applied = log.rows[0]?.count ?? 0;
    const connections = await client.query<{ name: string; ssl: boolean }>(workerConnections);
    for (const { name, ssl } of connections.rows) seen.workerConnections[ssl ? "tls" : "plain"].add(name);
  });
  return { seen, finish, stop };
}
