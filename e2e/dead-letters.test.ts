import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { createTestDatabase, redisUrl, uniquePrefix, waitFor } from "@booking-events/scripts/testing";
import { createPool } from "@booking-events/store";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { partnersFileFor } from "./partner.ts";
import { type RunningApp, runApp } from "./running-app.ts";

const secret = "a-secret-of-the-dead-letter-tests-012345";
let folder: string;
let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: ReturnType<typeof createPool>;
let environment: Record<string, string>;
const apps: RunningApp[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-dead-letters-"));
  await writeFile(join(folder, "partners.json"), partnersFileFor("acme", secret));
});

beforeEach(async () => {
  database = await createTestDatabase();
  pool = createPool({ databaseUrl: database.url, applicationName: "test", maxConnections: 2, onError: () => {} });
  environment = {
    REDIS_URL: redisUrl(),
    DATABASE_URL: database.url,
    PARTNERS_FILE: join(folder, "partners.json"),
    QUEUE_PREFIX: uniquePrefix(),
  };
});

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.stop("SIGKILL")));
  await pool.end();
  await database.drop();
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function start(name: "ingest" | "worker"): Promise<RunningApp> {
  const app = await runApp(name, environment);
  apps.push(app);
  await app.untilReady();
  return app;
}

async function post(ingest: RunningApp, reference: string, name: string): Promise<string> {
  const response = await fetch(`${ingest.url}/booking-event/update/${secret}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ consumerTripPartnerExternalReference: reference, consumerGivenName: name }),
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { eventId: string }).eventId;
}

interface Ran {
  exitCode: number;
  stdout: string;
  stderr: string;
}

function ops(...args: string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["apps/ops/dist/main.js", "dead-letters", ...args],
      { env: environment },
      (error, stdout, stderr) => resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

/** An operator's mistake: PostgreSQL refuses the content of some events. */
async function breakDatabase(): Promise<void> {
  await pool.query("alter table bookings add constraint mistake check (reference not like 'POISON%')");
}
const mendDatabase = () => pool.query("alter table bookings drop constraint mistake");

async function letters() {
  const { rows } = await pool.query("select * from dead_letters order by event_id");
  return rows;
}

test("events that could not be applied are replayed in their own place, as often as one likes", async () => {
  const [ingest] = await Promise.all([start("ingest"), start("worker")]);
  await breakDatabase();
  const first = await post(ingest, "POISON-1", "Canary-One");
  const second = await post(ingest, "POISON-2", "Canary-Two");
  await post(ingest, "GOOD", "Canary-Three");
  await waitFor(async () => expect(await letters()).toHaveLength(2), { timeoutMs: 30_000 });
  await waitFor(async () =>
    expect((await pool.query("select reference from bookings")).rows).toEqual([{ reference: "GOOD" }]),
  );

  const listed = await ops("list", "--json");
  expect(
    JSON.parse(listed.stdout)
      .map(({ eventId }: { eventId: string }) => eventId)
      .sort(),
  ).toEqual([first, second].sort());
  const shown = await ops("show", first);
  expect(shown.stdout).toMatch(/POISON-1[\s\S]*23514/);
  expect(listed.stdout + shown.stdout).not.toContain("Canary");
  expect((await ops("show", first, "--payload")).stdout).toContain("Canary-One");

  const unasked = await ops("replay", "--all");
  expect(unasked).toMatchObject({ exitCode: 2, stdout: "" });
  expect(unasked.stderr).toMatch(/Replay 2 dead letters \(2 × 23514\)\? .*--yes/);
  expect((await letters()).map(({ replayed_at }) => replayed_at)).toEqual([null, null]);

  const tooEarly = await ops("replay", first, "--yes");
  expect(tooEarly).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("1 of 1 could not be applied") });
  expect(tooEarly.stdout).toMatch(/dead +23514/);
  expect(await letters()).toHaveLength(2);
  expect((await letters()).find(({ event_id }) => event_id === first)).toMatchObject({
    attempts: 2,
    resolved_at: null,
  });

  await mendDatabase();
  // Sent after the first one, and applied before it.
  await post(ingest, "POISON-1", "Canary-Newest");
  await waitFor(async () =>
    expect((await pool.query("select 1 from bookings where reference = 'POISON-1'")).rowCount).toBe(1),
  );
  const [once, atOnce] = await Promise.all([ops("replay", "--all", "--yes", "--json"), ops("replay", first, "--yes")]);
  expect([once.exitCode, atOnce.exitCode]).toEqual([0, 0]);
  const again = await ops("replay", first, second, "--yes", "--json");
  expect(JSON.parse(again.stdout).map(({ result }: { result: string }) => result)).toEqual(["resolved", "resolved"]);

  const { rows: bookings } = await pool.query(
    "select reference, payload ->> 'consumerGivenName' as name from bookings order by reference",
  );
  expect(bookings).toEqual([
    { reference: "GOOD", name: "Canary-Three" },
    { reference: "POISON-1", name: "Canary-Newest" },
    { reference: "POISON-2", name: "Canary-Two" },
  ]);
  const { rows: events } = await pool.query(
    "select id from booking_events where reference = 'POISON-1' order by sequence",
  );
  expect(events[0]).toEqual({ id: first });
  expect(await letters()).toMatchObject(
    [first, second].map((event_id) => ({
      ...{ event_id, replayed_by: userInfo().username, resolved_by: "worker" },
      resolution: event_id === first ? "replayed: superseded" : "replayed: created",
    })),
  );
  expect((await ops("list")).stdout).toBe("No dead letters.\n");
}, 120_000);

test("an event that is discarded is never applied, and the reason stands in its row", async () => {
  const [ingest] = await Promise.all([start("ingest"), start("worker")]);
  await breakDatabase();
  const eventId = await post(ingest, "POISON-1", "Canary");
  await waitFor(async () => expect(await letters()).toHaveLength(1), { timeoutMs: 30_000 });
  expect((await ops("discard", eventId, "--reason", "sent again", "--by", "Ada", "--yes")).exitCode).toBe(0);
  expect((await ops("discard", eventId, "--reason", "twice", "--yes")).stdout).toContain(
    "closed already: discarded: sent again",
  );
  await mendDatabase();
  expect((await ops("replay", eventId, "--yes")).stdout).toMatch(/resolved +discarded: sent again/);
  expect((await pool.query("select 1 from bookings")).rowCount).toBe(0);
  expect(await letters()).toMatchObject([
    { resolved_by: "Ada", resolution: "discarded: sent again", replayed_at: null },
  ]);
}, 120_000);
