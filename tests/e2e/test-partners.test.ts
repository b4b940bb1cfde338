import { randomUUID } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createPool } from "@booking-events/store";
import { Redis } from "ioredis";
import { beforeAll, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-real-partner-0123456789";
const testSecret = "a-secret-of-the-test-partner-0123456789";
const shared = shareSurroundings(secret);
const guest = { consumerGivenName: "Canary", consumerEmail: "canary@example.com" };

beforeAll(() => {
  writePartnersFile(shared.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: null }, { rateLimit: noLimit }),
    partner("acme-test", { [testSecret]: null }, { rateLimit: noLimit, test: true }),
  ]);
});

async function ops(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runOps(args, { environment: shared.environment });
  expect([exitCode, stderr]).toEqual([0, stderr]);
  return stdout;
}

const json = async (...args: string[]) => JSON.parse(await ops(...args, "--json")) as unknown;

async function ask(question: string, bySecret: string, { rest = "", ...init }: RequestInit & { rest?: string } = {}) {
  const lookup = await shared.running("lookup");
  const response = await fetchAsPartner(`${lookup.url}/booking-event/${question}/${bySecret}${rest}`, init);
  return { status: response.status, body: await response.text() };
}

test("a test partner and another one with the same references go the whole way side by side, and never meet", async () => {
  const ingest = await shared.running("ingest");
  const send = (bySecret: string, kind: string, fields: object = guest) =>
    postAccepted(ingest, { secret: bySecret, kind, reference: "TRIP-1", fields });
  const real = await send(secret, "create");
  const created = await send(testSecret, "create");
  const between = new Date().toISOString();
  const deleted = await send(testSecret, "delete", {});
  // Before there is a worker, the events wait, each in the list of its own.
  const waiting = async (...more: string[]) =>
    ((await json("bookings", "stuck", ...more)) as { events: { id: string }[] }).events.map(({ id }) => id).sort();
  expect(await waiting()).toEqual([real]);
  expect(await waiting("--test-partners")).toEqual([created, deleted].sort());
  expect(await waiting("--partner", "acme-test")).toEqual([created, deleted].sort());
  await shared.running("worker");
  await waitFor(async () =>
    expect((await ask("receipt", testSecret, { rest: `/${deleted}` })).body).toContain('"applied"'),
  );

  // The partner sees its own, and only that.
  expect(JSON.parse((await ask("receipt", testSecret, { rest: `/${created}` })).body)).toMatchObject({
    outcome: "created",
  });
  expect((await ask("receipt", secret, { rest: `/${created}` })).status).toBe(404);
  const stateOf = async (bySecret: string) =>
    JSON.parse((await ask("booking", bySecret, { rest: "?reference=TRIP-1" })).body) as unknown;
  expect([await stateOf(testSecret), await stateOf(secret)]).toMatchObject([{ state: "deleted" }, { state: "active" }]);
  const list = { method: "POST", headers: { "Content-Type": "application/x-ndjson" } };
  const reconciled = async (bySecret: string) =>
    (await ask("reconcile", bySecret, { ...list, body: '{"reference":"TRIP-1"}\n' })).body;
  expect(await reconciled(testSecret)).toContain('"deleted-here"');
  expect(await reconciled(secret)).toContain('"same":1');

  // Nothing of the others shows it.
  const { rows } = await shared.pool.query("select partner, state from bookings");
  expect(rows).toEqual([{ partner: "acme", state: "active" }]);
  expect((await shared.pool.query("select partner, change from booking_changes")).rows).toEqual([
    { partner: "acme", change: "created" },
  ]);
  expect(await ops("events", "list")).not.toContain("acme-test");
  expect((await runOps(["status"], { environment: shared.environment })).stdout).not.toContain("acme-test");
  expect(await ops("export", "bookings", "--ndjson")).not.toContain("acme-test");
  expect(await ops("arrivals")).not.toContain("acme-test");
  // What names it, or asks for it, does.
  expect(await json("bookings", "show", "acme-test", "TRIP-1")).toMatchObject({ state: "deleted" });
  expect(await json("bookings", "show", "acme", "TRIP-1")).toMatchObject({ state: "active" });
  expect(await json("find", "TRIP-1")).toMatchObject({
    found: expect.arrayContaining([
      expect.objectContaining({ what: "booking", partner: "acme", isTest: false }),
      expect.objectContaining({ what: "booking", partner: "acme-test", isTest: true }),
    ]),
  });
  const metrics = await (await shared.running("worker")).metrics();
  expect(metrics).toMatch(/^booking_events_test_processed_total\{.*outcome="deleted".*\} 1$/m);
  expect(metrics).not.toContain("acme-test");

  // An operator may restore it, and that is recorded with all else.
  await ops("bookings", "restore", "acme-test", "--at", between, "--yes");
  expect(await stateOf(testSecret)).toMatchObject({ state: "active" });
  expect(await json("audit")).toContainEqual(
    expect.objectContaining({ command: "bookings restore", arguments: expect.objectContaining({ test: true }) }),
  );

  // A guest is erased in both. Of an event that can't be read, only its subject says where it belongs.
  const damaged = randomUUID();
  const redis = new Redis(shared.environment["REDIS_URL"] ?? "");
  await redis.hset(`${shared.environment["QUEUE_PREFIX"]}:events:${damaged}`, {
    data: `{"damaged": "${guest.consumerEmail}"`,
    subject: `acme-test ${"x".repeat(16)} test`,
  });
  redis.disconnect();
  await ops("guests", "erase", "--email", guest.consumerEmail, "--reason", "a request", "--yes");
  const testPool = createPool({
    databaseUrl: shared.environment["DATABASE_URL"] ?? "",
    schema: "public_test_partners",
    applicationName: "test",
    maxConnections: 1,
    onError: () => {},
  });
  try {
    for (const pool of [shared.pool, testPool])
      expect((await pool.query("select payload, erased_at is not null as erased from bookings")).rows).toEqual([
        { payload: null, erased: true },
      ]);
    const letters = "select event_id, resolution from dead_letters";
    expect((await shared.pool.query(letters)).rows).toEqual([]);
    expect((await testPool.query(letters)).rows).toEqual([{ event_id: damaged, resolution: "erased" }]);
  } finally {
    await testPool.end();
  }
  expect(await ops("guests", "find", "--email", guest.consumerEmail)).toContain("No bookings.");
});

test("ops keeps an id from becoming another kind of partner once it has sent events", async () => {
  const ingest = await shared.running("ingest");
  await postAccepted(ingest, { secret: testSecret, reference: "TRIP-2" });
  writePartnersFile(shared.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: null }, { rateLimit: noLimit }),
  ]);
  const { exitCode, stderr } = await runOps(["partners", "add", "acme-test"], { environment: shared.environment });
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining("has sent events as a test partner before")]);
  await ops("partners", "add", "acme-test", "--test");
  expect(await json("partners", "list")).toMatchObject([
    { id: "acme", test: false },
    { id: "acme-test", test: true },
  ]);
});
