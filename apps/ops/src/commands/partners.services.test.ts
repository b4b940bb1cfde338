import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { readPartnersFile } from "@booking-events/partners";
import { createTokenBuckets, openRecords } from "@booking-events/queue";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ran, runOps } from "../testing/run-ops.ts";

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

async function partners(args: string[], environment: Record<string, string> = {}): Promise<Ran> {
  return runOps(["partners", ...args], { environment: { PARTNERS_FILE: path, ...environment } });
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
  expect(without.stdout).not.toContain("LAST USED");
  const out = await partners(["list"], { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
  expect(out).toMatchObject({ exitCode: 0, stdout: without.stdout });
  expect(out.stderr).toMatch(/^Redis does not answer, so the list does not show when/);
});
