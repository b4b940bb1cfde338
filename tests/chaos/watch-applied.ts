import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** When events became visible in PostgreSQL to somebody who asks for them. */
export interface AppliedWatch {
  expect(eventId: string): void;
  /** By event id, by the clock of `performance.now()`. */
  seenAtMs: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

const pollIntervalMs = 50;

export async function watchApplied(databaseUrl: string): Promise<AppliedWatch> {
  const client = new pg.Client({ connectionString: databaseUrl });
  // Whoever runs a query is told, too.
  client.on("error", () => {});
  await client.connect();
  const stopping = new AbortController();
  const awaited = new Set<string>();
  const seenAtMs = new Map<string, number>();
  const polling = keepPolling();
  // One that fails is reported by `stop`.
  polling.catch(() => {});
  return {
    expect: (eventId) => void awaited.add(eventId),
    seenAtMs,
    async stop() {
      stopping.abort();
      try {
        await polling;
        await poll();
      } finally {
        await client.end();
      }
    },
  };

  async function keepPolling(): Promise<void> {
    while (!stopping.signal.aborted) {
      await poll();
      await sleep(pollIntervalMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  async function poll(): Promise<void> {
    if (awaited.size === 0) return;
    const { rows } = await client.query<{ id: string }>("select id from booking_events where id = any($1)", [
      [...awaited],
    ]);
    for (const { id } of rows) {
      seenAtMs.set(id, performance.now());
      awaited.delete(id);
    }
  }
}
