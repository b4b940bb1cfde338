import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { readPartnersFile } from "@booking-events/partners";
import { createTokenBuckets, openRecords } from "@booking-events/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ran, runOps } from "../testing/run-ops.ts";

const { url } = useTestDatabase({ maxConnections: 1 });
const prefix = uniquePrefix();
const usedAt = new Date("2026-11-20T22:25:01.500Z");
let folder: string;
let path: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-last-use-"));
  path = join(folder, "partners.json");
  await partners(["add", "acme"]);
  await partners(["rotate", "acme"]);
  const records = openRecords({
    ...{ redisServers: redisUrl(), prefix, connectionName: "test", onError: () => {} },
  });
  // The writer does not wait for a connection that is still being opened.
  await waitFor(() => records.writeLastUses([{ partner: "acme", secretId: "s1", usedAt }]).then(() => true));
  records.close();
});

afterAll(() => rm(folder, { recursive: true }));

async function partners(args: string[], environment: Record<string, string> = {}, now?: Date): Promise<Ran> {
  return runOps(["partners", ...args], {
    environment: { PARTNERS_FILE: path, DATABASE_URL: url, ...environment },
    ...(now && { now }),
  });
}

test("revocations are recorded in Redis, also later, and when a secret is replaced at once", async () => {
  const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };
  const records = openRecords({
    ...{ redisServers: redisUrl(), prefix: environment.QUEUE_PREFIX, connectionName: "test", onError: () => {} },
  });
  const own = { PARTNERS_FILE: join(folder, "revoked.json") };
  const digests = () => readPartnersFile(own.PARTNERS_FILE).partners[0]?.secrets.map(({ sha256 }) => sha256) ?? [];
  try {
    await partners(["add", "acme"], own);
    await partners(["rotate", "acme"], own);
    const down = await partners(["revoke", "acme", "s1"], {
      ...own,
      REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    });
    expect(down).toMatchObject({ exitCode: 0, stdout: "Revoked secret s1 of partner acme. It is now refused.\n" });
    expect(down.stderr).toMatch(
      /^Warning: the revocation could not be recorded in Redis.*does not answer.* Then run: .* revoke acme s1\n$/,
    );
    expect(await records.readRevocations()).toEqual(new Set());

    expect(await partners(["revoke", "acme", "s1"], { ...own, ...environment })).toMatchObject({ stderr: "" });
    expect(await records.readRevocations()).toEqual(new Set(digests().slice(0, 1)));
    await partners(["rotate", "acme", "--overlap", "1h"], { ...own, ...environment });
    expect(await records.readRevocations()).toEqual(new Set(digests().slice(0, 1)));
    expect(await partners(["rotate", "acme", "--overlap", "0"], { ...own, ...environment })).toMatchObject({
      stderr: "",
    });
    expect(await records.readRevocations()).toEqual(new Set(digests().slice(0, 3)));
  } finally {
    records.close();
  }
});

test("revoke and disable ask if the secret was used within a day", async () => {
  const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: prefix };
  const soon = new Date(usedAt.getTime() + 23 * 60 * 60_000);
  const before = readPartnersFile(path);
  const revoke = await partners(["revoke", "acme", "s1"], environment, soon);
  expect(revoke).toEqual({
    exitCode: 2,
    stdout: "",
    stderr:
      "Revoke s1 of partner acme, which was used at 2026-11-20T22:25:01Z? There is no terminal for the answer. " +
      "Add --yes. Nothing was done.\n",
  });
  const disable = await partners(["disable", "acme"], environment, soon);
  expect(disable).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/^Partner acme sent something at .*hold acme/),
  });
  expect(readPartnersFile(path)).toEqual(before);
  expect(await partners(["disable", "acme", "--yes"], environment, soon)).toMatchObject({ exitCode: 0 });
  const later = new Date(usedAt.getTime() + 25 * 60 * 60_000);
  expect(await partners(["enable", "acme"], environment, later)).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await partners(["disable", "acme"], environment, later)).toMatchObject({ exitCode: 0, stderr: "" });
  // Whatever it is, it must not wait for Redis.
  await partners(["enable", "acme"], environment);
  const down = { REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
  expect(await partners(["disable", "acme"], down, soon)).toMatchObject({ exitCode: 0 });
  await partners(["enable", "acme"], environment);
});

test("a partner that does not exist is an error, and not an empty list", async () => {
  const environment = { PARTNERS_FILE: path, DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: prefix };
  const lists = [
    ["events", "list"],
    ["refusals"],
    ["dead-letters", "list"],
    ["dead-letters", "replay", "--all"],
    ["guests", "find", "--reference", "TRIP-1"],
    ["guests", "erase", "--reference", "TRIP-1", "--reason", "r", "--dry-run"],
    ["bookings", "renormalise", "--dry-run"],
  ];
  for (const list of lists) {
    const { exitCode, stderr } = await runOps([...list, "--partner", "nobody"], { environment });
    expect({ list, exitCode, stderr }).toEqual({
      ...{ list, exitCode: 1 },
      stderr: "There is no partner nobody, and nothing of one. List all: ops partners list\n",
    });
    expect(await runOps([...list, "--partner", "acme"], { environment })).toMatchObject({ exitCode: 0 });
    const another = { ...environment, PARTNERS_FILE: "/nowhere/partners.json" };
    expect(await runOps([...list, "--partner", "nobody"], { environment: another })).toMatchObject({ exitCode: 0 });
    expect(await runOps([...list, "--partner", "ada@example.com"], { environment })).toMatchObject({ exitCode: 2 });
  }
}, 120_000);

test("list shows when each secret was last used, if Redis knows", async () => {
  const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: prefix };
  const { exitCode, stdout, stderr } = await partners(["list"], environment);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  const [header, first, second] = stdout.split("\n");
  expect(header).toMatch(/LAST USED$/);
  expect(first).toMatch(/ s1 .* 2026-11-20T22:25:01Z$/);
  expect(second).toMatch(/ s2 .* never$/);
  const json = JSON.parse((await partners(["list", "--json"], environment)).stdout);
  expect(json[0].secrets).toMatchObject([
    { id: "s1", lastUsedAt: usedAt.toISOString() },
    { id: "s2", lastUsedAt: null },
  ]);
});

test("list shows what each partner has used of its quota today, if Redis knows", async () => {
  const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: prefix };
  const buckets = createTokenBuckets({ redisServers: redisUrl(), prefix, onError: () => {}, deadlineMs: 10_000 });
  const size = { perSecond: 1, burst: 1 };
  await waitFor(() => buckets.take("acme", size, 0, 0, 1_234_567_890));
  buckets.close();
  expect((await partners(["list"], environment)).stdout).toMatch(/ 1.23 GB of 5 GB a day /);
  const json = JSON.parse((await partners(["list", "--json"], environment)).stdout);
  expect(json).toMatchObject([{ id: "acme", bytesPerDay: 5_000_000_000, bytesToday: 1_234_567_890 }]);
});

test("list works without Redis, and says if Redis is configured but does not answer", async () => {
  const without = await partners(["list"]);
  expect(without).toMatchObject({ exitCode: 0, stderr: "" });
  expect(without.stdout).toMatch(/ unknown$/m);
  const out = await partners(["list"], { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
  expect(out).toMatchObject({ exitCode: 0, stdout: without.stdout });
  expect(out.stderr).toMatch(/^Redis does not answer, so the list does not show when/);
});
