import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createProducer } from "@booking-events/queue";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const { url: databaseUrl } = useTestDatabase({ maxConnections: 2 });
const folder = mkdtempSync(join(tmpdir(), "booking-events-erasure-"));
const password = "a-password-of-both-servers";
const email = "ada.canary7q@example.com";
const servers: DataServer[] = [];
let primary: Redis;
let replica: Redis;
let environment: Record<string, string>;

beforeAll(async () => {
  primary = await start("primary", {});
  const { port } = new URL(servers[0]?.url ?? "");
  replica = await start("replica", { replicaof: `127.0.0.1 ${port}`, masterauth: password });
});

afterAll(async () => {
  primary?.disconnect();
  replica?.disconnect();
  for (const server of servers) await server.stop();
  rmSync(folder, { recursive: true });
});

async function start(name: string, settings: Record<string, string>): Promise<Redis> {
  const dir = join(folder, name);
  mkdirSync(dir);
  writeFileSync(join(dir, "password"), password);
  const server = await startRedis({ dir, settings: { ...settings, "repl-diskless-sync-delay": "0" } });
  servers.push(server);
  return new Redis(server.url);
}

beforeEach(async () => {
  await waitFor(async () => expect(await replica.info("replication")).toContain("master_link_status:up"));
  environment = { DATABASE_URL: databaseUrl, REDIS_URL: servers[0]?.url ?? "", QUEUE_PREFIX: uniquePrefix() };
  await enqueueGuest();
  await waitFor(() => expect(filesWithGuest("replica")).not.toEqual([]));
});

/** An event that waits, as ingest queues it. */
async function enqueueGuest(): Promise<void> {
  const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "" } = environment;
  const producer = createProducer({ redisServers, prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.enqueue({
    eventId: crypto.randomUUID(),
    kind: "create",
    partner: "acme",
    idempotencyKey: null,
    receivedAt: new Date().toISOString(),
    payload: { consumerTripPartnerExternalReference: "TRIP-1", consumerEmail: email },
  });
  await producer.close();
}

function filesWithGuest(server: string): string[] {
  const entries = readdirSync(join(folder, server), { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return paths.filter((path) => readFileSync(path, "latin1").includes(email));
}

function eraseGuest() {
  return runOps(["guests", "erase", "--email", email, "--reason", "request 4711", "--yes"], { environment });
}

test("an erased guest is gone from the files of Redis' replicas, too", async () => {
  const { exitCode, stdout, stderr } = await eraseGuest();
  expect(stdout).toContain("Redis has rewritten its append-only file.\n1 of 1 replicas have rewritten theirs.");
  expect(exitCode).toBe(0);
  expect(stderr).not.toContain("BGREWRITEAOF");
  // Redis deletes the old file in the background.
  await waitFor(() => expect([...filesWithGuest("primary"), ...filesWithGuest("replica")]).toEqual([]));
});

test("a replica that forbids the rewrite is named, with what to do", async () => {
  await replica.call("ACL", "SETUSER", "default", "-bgrewriteaof");
  try {
    const { stdout, stderr } = await eraseGuest();
    expect(stdout).toContain("Redis has rewritten its append-only file.\n0 of 1 replicas have rewritten theirs.");
    expect(stderr).toContain("NOPERM");
    expect(stderr).toContain(`run: redis-cli -h 127.0.0.1 -p ${await announcedPort()} BGREWRITEAOF`);
  } finally {
    await replica.call("ACL", "SETUSER", "default", "+bgrewriteaof");
  }
});

test("a replica that can't be reached is named, with what to do", async () => {
  const port = await freePort();
  await announcePort(port);
  try {
    const { stdout, stderr } = await eraseGuest();
    expect(stdout).toContain("Redis has rewritten its append-only file.\n0 of 1 replicas have rewritten theirs.");
    expect(stderr).toContain("ECONNREFUSED");
    expect(stderr).toContain(`run: redis-cli -h 127.0.0.1 -p ${port} BGREWRITEAOF`);
  } finally {
    await announcePort(Number(new URL(servers[1]?.url ?? "").port));
  }
});

async function announcePort(port: number): Promise<void> {
  await replica.config("SET", "replica-announce-port", String(port));
  await primary.call("CLIENT", "KILL", "TYPE", "replica");
  await waitFor(async () => expect(await announcedPort()).toBe(String(port)));
}

async function announcedPort(): Promise<string | undefined> {
  return /^slave0:ip=.+,port=(\d+),state=online/m.exec(await primary.info("replication"))?.[1];
}
