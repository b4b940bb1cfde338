import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { type Certificate, createCertificate } from "@booking-events/scripts/certificates";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type DatabaseProxy, type ProxyMode, startDatabaseProxy } from "./database-proxy.ts";
import { postAccepted } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-connection-tests-0123456";
const surroundings = prepareSurroundings(secret);
const recovery = { timeoutMs: 60_000 };

let folder: string;
let certificate: Certificate;
let expired: Certificate;
let proxy: DatabaseProxy;
let ingest: RunningApp;
/** Connects through the proxy, and trusts it, whether or not its certificate has expired. */
let workerEnvironment: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-connections-"));
  certificate = await createCertificate();
  const [notBeforeDate, notAfterDate] = [new Date("2024-01-01"), new Date("2025-01-01")];
  expired = await createCertificate({ notBeforeDate, notAfterDate });
  await writeFile(join(folder, "authorities.pem"), `${certificate.certificate}\n${expired.certificate}`);
});

beforeEach(async () => {
  const { DATABASE_URL: databaseUrl = "" } = surroundings().environment;
  proxy = await startDatabaseProxy({ databaseUrl, certificate, expired });
  const url = new URL(databaseUrl);
  url.hostname = "localhost";
  url.port = String(proxy.port);
  url.searchParams.set("sslmode", "verify-full");
  url.searchParams.set("sslrootcert", join(folder, "authorities.pem"));
  workerEnvironment = { DATABASE_URL: url.href };
  ingest = await surroundings().start("ingest");
});

afterEach(() => proxy.close());
afterAll(() => rm(folder, { recursive: true, force: true }));

function post(reference: string): Promise<string> {
  return postAccepted(ingest, { secret, reference });
}

async function untilApplied(count: number): Promise<void> {
  await waitFor(async () => {
    const { rowCount } = await surroundings().pool.query("select 1 from booking_events");
    expect(rowCount).toBe(count);
  }, recovery);
}

const modes: ProxyMode[] = [
  "reset at once",
  "reset in the handshake",
  "expired certificate",
  "no TLS",
  "error at the start",
  "invalid request for a password",
  "error at the first statement",
  "silent",
];
test.each(modes)("a failure before our first statement costs no event an attempt: %s", async (mode) => {
  const worker = await surroundings().start("worker", { environment: workerEnvironment });
  await post("BEFORE");
  await untilApplied(1);
  proxy.setMode(mode);
  const eventIds = await Promise.all(Array.from({ length: 20 }, (_, index) => post(`DURING-${index}`)));
  await waitFor(
    async () => expect((await worker.readiness()).body.problems?.join()).toContain("PostgreSQL is unavailable"),
    recovery,
  );
  // It keeps trying.
  await waitFor(() => expect(proxy.countConnections()).toBeGreaterThan(3), recovery);
  await expectNoAttemptIn(eventIds);
  proxy.setMode("through");
  await untilApplied(21);
  expect(worker.logLines().filter(({ msg }) => msg === "attempt failed")).toEqual([]);
  expect((await surroundings().pool.query("select * from dead_letters")).rows).toEqual([]);
  await worker.untilReady();
});

test.each(modes)("a worker that starts meanwhile waits, and says so: %s", async (mode) => {
  proxy.setMode(mode);
  await post("BEFORE");
  const worker = await surroundings().start("worker", { environment: workerEnvironment, isReady: false });
  await waitFor(
    async () => expect((await worker.readiness()).body.problems?.join()).toContain("PostgreSQL is unavailable"),
    recovery,
  );
  proxy.setMode("through");
  await untilApplied(1);
  await worker.untilReady();
});

async function expectNoAttemptIn(eventIds: string[]): Promise<void> {
  const { REDIS_URL = "", QUEUE_PREFIX: prefix } = surroundings().environment;
  const redis = new Redis(REDIS_URL);
  try {
    for (const eventId of eventIds)
      expect(await redis.hmget(`${prefix}:events:${eventId}`, "name", "atm")).toEqual(["create", null]);
  } finally {
    redis.disconnect();
  }
}
