import { join } from "node:path";
import type { Post } from "@booking-events/chaos/post-events";
import { follow } from "@booking-events/feed";
import { waitFor } from "@booking-events/harness";
import { type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import { createPool } from "@booking-events/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { printedByOps } from "./run-ops.ts";
import { startLoad, writeLoadPartners } from "./steady-load.ts";
import { useOwnServices } from "./surroundings.ts";

/** A primary dies under load, and its synchronous standby is promoted. No process is restarted. */
const patient = { timeoutMs: 60_000 };
const own = useOwnServices("a-secret-of-the-failover-tests-0123456789");
let standby: PostgresStandby;
let pool: ReturnType<typeof createPool>;
let secretOf: (partner: string) => string;

beforeAll(async () => {
  standby = await startPostgresStandby({ primary: own.postgres, dir: join(own.folder, "standby") });
  const { host } = new URL(own.postgres.url);
  const databaseUrl = own.postgres.url.replace(host, `${host},127.0.0.1:${standby.port}`);
  own.environment["DATABASE_URL"] = databaseUrl;
  own.environment["PARTNERS_FILE"] = join(own.folder, "partners.json");
  secretOf = writeLoadPartners(own.environment["PARTNERS_FILE"]);
  pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 2, onError: () => {} });
});

afterAll(async () => {
  await pool?.end();
  await standby?.stop();
});

async function untilMoreEvents(count: number): Promise<void> {
  const readCount = async () => {
    const { rows } = await pool.query<{ count: number }>("select count(*)::integer from booking_events");
    return rows[0]?.count ?? 0;
  };
  const target = (await readCount()) + count;
  await waitFor(async () => (await readCount()) >= target, patient);
}

function lastAcknowledged(posts: readonly Post[]): { partner: string; eventId: string } {
  const acknowledged = posts.flatMap(({ partner, attempts }) =>
    attempts.flatMap(({ end }) => (end.result === "acknowledged" ? [{ partner, eventId: end.eventId }] : [])),
  );
  return acknowledged.at(-1) as (typeof acknowledged)[0];
}

test("when a standby is promoted, every process goes on with it: no event is lost, and none becomes a dead letter", async () => {
  const [ingest, lookup, ...workers] = await Promise.all([
    own.start("ingest"),
    own.start("lookup", { isReady: false }),
    own.start("worker"),
    own.start("worker"),
  ]);
  await lookup.untilReady();
  const stopping = new AbortController();
  const followed: number[] = [];
  const following = follow({
    name: "failover",
    database: own.environment["DATABASE_URL"] ?? "",
    signal: stopping.signal,
    logger: { info: () => {}, warn: () => {} },
    onChange: async ({ id }) => void followed.push(id),
  });
  const load = startLoad({ ingestUrls: [ingest.url], secretOf, environment: own.environment, perSecond: 100 });
  try {
    await untilMoreEvents(300);
    own.postgres.kill("SIGKILL");
    await own.postgres.ended();
    // Partners notice nothing meanwhile.
    const before = load.countAcknowledged();
    await waitFor(() => load.countAcknowledged() > before + 100, patient);
    await standby.promote();
    await untilMoreEvents(500);

    const { partner, eventId } = lastAcknowledged(load.posts);
    const response = await fetch(`${lookup.url}/booking-event/receipt/${secretOf(partner)}/${eventId}`);
    expect(response.status).toBe(200);
    await load.stop();
    const { violations } = await load.judge();
    expect(violations).toEqual([]);
    expect((await pool.query("select from dead_letters")).rowCount).toBe(0);
    const { rows } = await pool.query<{ last: number }>("select last_id as last from feed_position");
    await waitFor(() => followed.includes(rows[0]?.last ?? 0), patient);
    // The transaction that broke may have handled some changes for the first time.
    const distinct = [...new Set(followed)];
    expect(distinct).toEqual(distinct.map((_, index) => index + 1));
    expect(await printedByOps(["bookings", "verify"], own.environment)).toContain(" 0 bookings differ");
    for (const app of [ingest, lookup, ...workers]) expect(app.child.exitCode).toBe(null);
    const messages = workers.flatMap((worker) => worker.logLines().map(({ msg }) => msg));
    expect(messages).toContain("PostgreSQL is available again: applying events");
    expect(messages).not.toContain("attempt failed");
  } finally {
    stopping.abort();
    await following;
    await load.close();
  }
}, 300_000);
