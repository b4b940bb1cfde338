import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** A reader of the feed who is there all the time, and asks for what comes after the last id that it has seen. */
export interface DatabaseFollower {
  /** Ids of `booking_changes`, in the order in which they were read. */
  changeIds: number[];
  /** Events in the log, as last seen. */
  applied: number;
  /** Connections of the workers that were seen, by whether they were over TLS. */
  workerConnections: { tls: Set<string>; plain: Set<string> };
  /** Reads to the present end, and stops. */
  finish(): Promise<void>;
  stop(): void;
}

const pollIntervalMs = 250;
const queryTimeoutMs = 3_000;
const workerConnections = `select pid || ' ' || backend_start as name, ssl
  from pg_stat_activity join pg_stat_ssl using (pid) where application_name = 'booking-events-worker'`;

export function followDatabase(databaseUrl: string): DatabaseFollower {
  const stopping = new AbortController();
  let client: pg.Client | undefined;
  const follower: DatabaseFollower = {
    changeIds: [],
    applied: 0,
    workerConnections: { tls: new Set(), plain: new Set() },
    async finish() {
      stopping.abort();
      await polling;
      await poll();
      await client?.end();
    },
    stop: () => stopping.abort(),
  };
  const polling = keepPolling();
  return follower;

  async function keepPolling(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await poll();
      } catch {
        // PostgreSQL is out, as it is meant to be now and then. The end of a broken connection is not worth a wait.
        void client?.end().catch(() => {});
        client = undefined;
      }
      await sleep(pollIntervalMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  async function poll(): Promise<void> {
    client ??= await connect(databaseUrl);
    const { rows } = await client.query<{ id: number }>(
      "select id::float8 from booking_changes where id > $1 order by id",
      [follower.changeIds.at(-1) ?? 0],
    );
    for (const { id } of rows) follower.changeIds.push(id);
    const { rows: counts } = await client.query<{ count: number }>("select count(*)::float8 from booking_events");
    follower.applied = counts[0]?.count ?? 0;
    const { rows: connections } = await client.query<{ name: string; ssl: boolean }>(workerConnections);
    for (const { name, ssl } of connections) follower.workerConnections[ssl ? "tls" : "plain"].add(name);
  }
}

async function connect(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: queryTimeoutMs,
    query_timeout: queryTimeoutMs,
  });
  client.on("error", () => {});
  await client.connect();
  return client;
}
