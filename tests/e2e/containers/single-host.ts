import assert from "node:assert/strict";
import { waitFor } from "@booking-events/harness/wait-for";
import type { Container, Deployment } from "./deployment.ts";
import { Sender } from "./sender.ts";
import type { Step } from "./step.ts";

const files = "docker-compose.yml:host.yml";
const port = { caddy: 443 };
/** Beyond this, Docker kills. */
const killed = 137;
/** Each runs one command. */
const ends = new Set(["folders", "migrate", "tls-needs-site-address"]);

/** docker-compose.yml with all profiles: starts, scales, updates, is killed, and stops. */
export async function trySingleHost(deployment: Deployment, step: Step): Promise<void> {
  await deployment.set({ COMPOSE_FILE: files, COMPOSE_PROFILES: "tls,observability,backup,console", WORKERS: "1" });
  await step("the profile tls without an address ends with a sentence", () => startWithoutAddress(deployment));
  await deployment.set({ SITE_ADDRESS: "localhost" });
  let secret = "";
  await step("the first partner, before anything runs", async () => {
    secret = await deployment.addPartner("check");
  });
  await step("up with all profiles", () => deployment.compose("up", "--detach", "--wait"));
  const address = await deployment.address("caddy", port.caddy);
  const sender = new Sender(`https://localhost:${address.split(":").at(-1)}`, secret, 40);
  try {
    await step("more workers", () => scale(deployment, 3));
    await upgradeAndReturn(deployment, sender, step);
    await step("kill -9 of each process: it comes back", () => killEach(deployment));
    await step("without workers, somebody is paged", () => isPaged(deployment));
    await waitFor(() => sender.answers.at(-1)?.status === 200, { timeoutMs: 60_000 });
  } finally {
    await sender.stop();
  }
  await step("every accepted event was applied", () => allApplied(deployment, sender.accepted));
  await step("no event is listed as lost", () => nothingLost(deployment));
  await step("a dump is restored, beside the database and in its place", () => restore(deployment, sender.accepted));
  await step("logs have no secret", () => readLogs(deployment, secret));
  await step("all stop in time, and by themselves", () => stopAll(deployment));
}

async function startWithoutAddress(deployment: Deployment): Promise<void> {
  await assert.rejects(
    deployment.compose("up", "--detach"),
    /"tls-needs-site-address" didn't complete successfully|tls-needs-site-address.* exited \(1\)/,
  );
}

async function scale(deployment: Deployment, workers: number): Promise<void> {
  await deployment.set({ WORKERS: String(workers) });
  await deployment.compose("up", "--detach", "--wait");
  const running = (await deployment.containers()).filter(({ service }) => service === "worker");
  assert.equal(running.length, workers);
}

/** As docs/operations/change.md says: the images of the release are there. */
async function change(deployment: Deployment, sender: Sender, release: string): Promise<string> {
  const first = sender.answers.length;
  const startedAt = Date.now();
  await deployment.set({ RELEASE: release });
  await deployment.typeDocumented("docs/operations/change.md", "--no-deps ingest-2");
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  await waitFor(() => sender.answers.length >= first + 500, { timeoutMs: 60_000 });
  // A machine that is busy with other things refuses some by itself.
  const isBusy = /"code":"(overloaded|too-slow)"/;
  const failed = sender.answers.slice(first).filter(({ status, body }) => status !== 200 && !isBusy.test(body));
  const codes = Map.groupBy(failed, ({ status, body }) => `${status} ${body}`);
  assert.deepEqual(
    Array.from(codes, ([answer, { length }]) => [answer, length]),
    [],
  );
  const images = new Set((await deployment.containers()).map(({ image }) => image));
  const ours = Array.from(images).filter((image) => image.startsWith("booking-events-"));
  assert.deepEqual(
    ours.filter((image) => !image.endsWith(`:${release}`)),
    [],
  );
  return `0 of ${sender.answers.length - first} requests failed, ${seconds} s`;
}

const nextMigration = `-- A column that this release does not know.
-- Older releases can go on after this.
alter table bookings add column next text;
`;

async function upgradeAndReturn(deployment: Deployment, sender: Sender, step: Step): Promise<void> {
  const next = `${deployment.name}-next`;
  await deployment.buildNext(next, nextMigration);
  await step("an upgrade with a migration, one ingest after the other", () => change(deployment, sender, next));
  const applied = await deployment.query("select name from schema_migrations where name like '9999%'");
  assert.deepEqual(applied, ["9999_next"]);
  await step("the way back", () => change(deployment, sender, deployment.name));
}

async function killEach(deployment: Deployment): Promise<void> {
  const running = (await deployment.containers()).filter(({ isRunning }) => isRunning);
  for (const container of running) {
    await deployment.killProcess(container);
    await waitFor(() => wasRestarted(deployment, container), { timeoutMs: 60_000, intervalMs: 500 });
    await deployment.untilHealthy(container.service);
  }
}

async function isPaged(deployment: Deployment): Promise<void> {
  const printed = () => deployment.compose("logs", "--no-color", "--no-log-prefix", "alert-printer");
  assert.match(await printed(), /^\/watchdog firing Watchdog/m);
  await deployment.compose("stop", "worker");
  await waitFor(
    async () => assert.match(await printed(), /^\/page firing AllWorkersGone .* docs\/runbook\.md#allworkersgone$/m),
    {
      timeoutMs: 300_000,
      intervalMs: 5_000,
    },
  );
  await deployment.compose("start", "worker");
}

async function wasRestarted(deployment: Deployment, { id, startedAt }: Container): Promise<boolean> {
  const now = (await deployment.containers()).find((container) => container.id === id);
  return now?.isRunning === true && now.startedAt !== startedAt;
}

/** What was answered with 200 must be in the log of events. */
export async function allApplied(deployment: Deployment, accepted: string[], postgres = "postgres"): Promise<string> {
  assert(accepted.length > 100, `only ${accepted.length} events were accepted`);
  await waitFor(
    async () => {
      const applied = new Set(await deployment.query("select id from booking_events", postgres));
      const missing = accepted.filter((id) => !applied.has(id));
      if (missing.length > 0) throw new Error(`${missing.length} of ${accepted.length} events are not applied`);
    },
    { timeoutMs: 120_000, intervalMs: 1_000 },
  );
  return `${accepted.length} of ${accepted.length}`;
}

/** The command of docs/runbook.md. */
export async function nothingLost(deployment: Deployment): Promise<void> {
  assert.match(await deployment.type("deploy/find-lost-events"), /lost\s[-+\s]*\(0 rows\)/);
}

async function restore(deployment: Deployment, accepted: string[]): Promise<void> {
  const countDumps = async () => (await deployment.compose("logs", "backup")).split("Wrote ").length - 1;
  const before = await countDumps();
  await deployment.compose("restart", "backup");
  await waitFor(async () => (await countDumps()) > before, { timeoutMs: 60_000 });
  const checked = await deployment.compose("run", "--rm", "--no-TTY", "backup", "check");
  assert.match(checked, /The dump:\n.*newest_event.*The database:\n/s);
  await deployment.typeDocumented("docs/operations/change.md", "backup restore");
  await allApplied(deployment, accepted);
  await assert.rejects(deployment.compose("run", "--rm", "--no-TTY", "backup", "restore"), /is not empty/);
}

async function readLogs(deployment: Deployment, secret: string): Promise<void> {
  const logs = await deployment.compose("logs", "--no-color", "--no-log-prefix");
  assert(logs.includes('"outcome":"accepted"'), "ingest logs accepted events");
  assert(!logs.includes(secret), "a log has the secret");
}

async function stopAll(deployment: Deployment): Promise<void> {
  await deployment.compose("stop");
  for (const { service, exitCode, stopSignal } of await deployment.containers())
    if (!ends.has(service) && stopSignal !== "SIGKILL") assert.notEqual(exitCode, killed, `${service} was killed`);
}
