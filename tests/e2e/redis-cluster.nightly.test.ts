import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, waitFor } from "@booking-events/harness";
import { builtApps, startApp } from "@booking-events/harness/app-process";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";
import { createTestDatabase } from "@booking-events/harness/test-database";
import { createCertificate } from "@booking-events/scripts/certificates";
import { startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { printedByOps } from "./run-ops.ts";

const password = "a/b#c";
/** A test's database need not survive a power cut. */
const unsafeTestDatabase = /^PostgreSQL may lose committed data/;
const prefix = "{booking-events}";

/** Starts a cluster of one node, whose clients need TLS and the users of `deploy/redis-users.conf`. */
async function startCluster(dir: string) {
  const { certificate, key } = await createCertificate();
  const [certificateFile, keyFile] = [join(dir, "redis.crt"), join(dir, "redis.key")];
  writeFileSync(certificateFile, certificate);
  writeFileSync(keyFile, key, { mode: 0o600 });
  const tlsPort = await freePort();
  const server = await startRedis({
    dir: join(dir, "redis"),
    settings: {
      "tls-port": String(tlsPort),
      "tls-cert-file": certificateFile,
      "tls-key-file": keyFile,
      "tls-ca-cert-file": certificateFile,
      "tls-auth-clients": "no",
      "tls-cluster": "yes",
      "cluster-enabled": "yes",
      "cluster-port": String(await freePort()),
      "cluster-announce-hostname": "localhost",
    },
  });
  onTestFinished(() => server.stop());
  const admin = new Redis(server.url);
  onTestFinished(() => admin.disconnect());
  await admin.cluster("ADDSLOTSRANGE", 0, 16_383);
  const digest = createHash("sha256").update(password).digest("hex");
  const users = readFileSync("deploy/redis-users.conf", "utf8").replaceAll(/#SHA256-OF-\w+-PASSWORD/g, `#${digest}`);
  for (const line of users.split("\n")) {
    const [keyword, user = "", ...rules] = line.split(" ");
    if (keyword === "user" && user !== "default") await admin.call("ACL", "SETUSER", user, ...rules);
  }
  await waitFor(async () => expect(await admin.cluster("INFO")).toContain("cluster_state:ok"));
  return { tlsPort, certificateFile };
}

test("in a cluster with TLS and the least privileges, an event goes its whole way, and ops reaches the queue", async () => {
  const dir = mkdtempSync(join(tmpdir(), "booking-events-cluster-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const { tlsPort, certificateFile } = await startCluster(dir);
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const partnersFile = join(dir, "partners.json");
  const { acme: secret } = writeNewPartners(partnersFile, { acme: noLimit });
  const environmentOf = (name: string) => ({
    REDIS_CLUSTER: `localhost:${tlsPort}`,
    REDIS_TLS: "true",
    QUEUE_PREFIX: prefix,
    REDIS_USERNAME: `booking-events-${name}`,
    REDIS_PASSWORD: password,
    DATABASE_URL: database.url,
    PARTNERS_FILE: partnersFile,
    NODE_EXTRA_CA_CERTS: certificateFile,
  });
  const [ingest, worker, lookup] = await Promise.all(
    (["ingest", "worker", "lookup"] as const).map((name) =>
      startApp(builtApps[name], environmentOf(name), { name, toleratedProblems: unsafeTestDatabase }),
    ),
  );
  for (const app of [ingest, worker, lookup]) onTestFinished(async () => void (await app?.stop()));
  await Promise.all([ingest, worker, lookup].map((app) => app?.untilReady()));

  const eventId = await postAccepted({ url: ingest?.url ?? "" }, { secret: secret ?? "", reference: "TRIP-1" });
  await waitFor(async () => {
    const receipt = await fetch(`${lookup?.url}/booking-event/receipt/${secret}/${eventId}`);
    expect(await receipt.json()).toMatchObject({ status: "applied", outcome: "created" });
  });
  expect(await ingest?.metrics()).toMatch(/booking_events_certificate_expires_timestamp_seconds\{.*redis/);
  await printedByOps(["queue", "pause"], environmentOf("ops"));
}, 60_000);
