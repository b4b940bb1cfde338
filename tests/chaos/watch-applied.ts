import { keepAsking } from "./database.ts";

const lookIntervalMs = 50;

/** Notes when each of the events that it is told to expect becomes visible in PostgreSQL. */
export function watchApplied(databaseUrl: string) {
  const expected = new Set<string>();
  /** By event id, by `performance.now()`. */
  const seenAtMs = new Map<string, number>();
  const { finish, stop } = keepAsking(databaseUrl, lookIntervalMs, async (client) => {
    if (expected.size === 0) return;
    const select = "select id from booking_events where id = any($1)";
    const { rows } = await client.query<{ id: string }>(select, [[...expected]]);
    for (const { id } of rows) {
      seenAtMs.set(id, performance.now());
      expected.delete(id);
    }
  });
  return { seenAtMs, expect: (eventId: string) => void expected.add(eventId), finish, stop };
}
