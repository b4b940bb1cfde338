import { repeat } from "@booking-events/runtime";
import pg from "pg";

const timeoutMs = 10_000;

/** A frozen server holds nobody up for longer than 10 s, with a connection or with a query. */
export async function connect(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  // A query that fails rejects as well. Without a listener, this event would end the process.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Asks PostgreSQL again and again. When a connection breaks, it opens another. */
export function keepAsking(databaseUrl: string, intervalMs: number, ask: (client: pg.Client) => Promise<void>) {
  const stopping = new AbortController();
  let client: pg.Client | undefined;
  const asking = repeat(askOnce, intervalMs, stopping.signal);

  async function askOnce(): Promise<void> {
    try {
      client ??= await connect(databaseUrl);
      await ask(client);
    } catch {
      // The faults take PostgreSQL away now and then. A frozen server would not answer the end of the connection.
      void client?.end().catch(() => {});
      client = undefined;
    }
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await asking;
    void client?.end().catch(() => {});
  }

  return {
    stop,
    /** Asks one last time, and stops. */
    async finish(): Promise<void> {
      await stop();
      const last = await connect(databaseUrl);
      await ask(last).finally(() => last.end());
    },
  };
}
