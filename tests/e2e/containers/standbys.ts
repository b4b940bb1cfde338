import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness/wait-for";
import type { Deployment } from "./deployment.ts";
import { Sender } from "./sender.ts";
import { allApplied, nothingLost } from "./single-host.ts";
import type { Step } from "./step.ts";

const files = "docker-compose.yml:deploy/ha/compose.yml:host.yml";
/** Three seconds of them pass before a sentinel believes it. */
const longestElectionMs = 10_000;
const longestOutageMs = 15_000;

/** With deploy/ha/compose.yml, as docs/operations/grow.md describes it: both primaries are lost. */
export async function tryStandbys(deployment: Deployment, step: Step): Promise<void> {
  await deployment.set({ COMPOSE_FILE: files, COMPOSE_PROFILES: "", SITE_ADDRESS: "", WORKERS: "1" });
  await step("up with standbys", () => deployment.compose("up", "--detach", "--wait"));
  const secret = await deployment.addPartner("check-standbys");
  const sender = new Sender(`http://${await deployment.address("ingest", 8080)}`, secret, 100);
  try {
    await waitFor(() => sender.accepted.length > 20, { timeoutMs: 60_000 });
    await step("a restarted Redis needs no failover", () => restartPrimary(deployment, sender));
    await step("Redis' primary is lost, and another one takes over", () => loseRedis(deployment, sender));
    await step("the old primary comes back as a replica", () => returnRedis(deployment));
    await step("without two sentinels, status and doctor say so", () => loseQuorum(deployment));
    await step("PostgreSQL's primary is lost, and the standby is promoted by hand", () => losePostgres(deployment));
  } finally {
    await sender.stop();
  }
  await step("every accepted event was applied", () => allApplied(deployment, sender.accepted, "postgres-2"));
  await step("no event is listed as lost", () => nothingLost(deployment));
}

async function primaryAddress(deployment: Deployment): Promise<string> {
  const asked = ["redis-cli", "-p", "26379", "sentinel", "get-master-addr-by-name", "booking-events"];
  return (await deployment.compose("exec", "--no-TTY", "sentinel-2", ...asked)).split("\n")[0] ?? "";
}

async function primaryService(deployment: Deployment): Promise<string> {
  return (
    { "11": "redis", "12": "redis-2", "13": "redis-3" }[(await primaryAddress(deployment)).split(".").at(-1) ?? ""] ??
    ""
  );
}

async function restartPrimary(deployment: Deployment, sender: Sender): Promise<string> {
  const before = await primaryService(deployment);
  const since = Date.now();
  await deployment.killProcess(await deployment.container(before));
  await untilAccepted(sender, since);
  assert.equal(await primaryService(deployment), before);
  return `no event sent within ${sender.longestOutageMs(since)} ms was accepted`;
}

async function loseRedis(deployment: Deployment, sender: Sender): Promise<string> {
  const lost = await primaryAddress(deployment);
  const service = await primaryService(deployment);
  const since = Date.now();
  // Docker does not start it again after this.
  await deployment.compose("kill", service);
  await waitFor(async () => (await primaryAddress(deployment)) !== lost, { timeoutMs: 30_000 });
  await untilAccepted(sender, Date.now());
  // Not since Docker saw it end: if its disk is slow, Redis is silent for seconds before that.
  const electedMs = (await electedAt(deployment, since)) - since;
  const outageMs = sender.longestOutageMs(since);
  assert(electedMs < longestElectionMs, `the sentinels took ${electedMs} ms`);
  assert(outageMs < longestOutageMs, `no event sent within ${outageMs} ms was accepted`);
  return `a new primary after ${electedMs} ms, no event sent within ${outageMs} ms was accepted`;
}

/** By the log of the first sentinel that says so. To ask them takes a second itself. */
async function electedAt(deployment: Deployment, since: number): Promise<number> {
  const sentinels = ["sentinel-1", "sentinel-2", "sentinel-3"];
  const log = await deployment.compose("logs", "--no-color", "--no-log-prefix", "--timestamps", ...sentinels);
  const times = [...log.matchAll(/^(\S+) .*\+switch-master/gm)].map(([, time = ""]) => Date.parse(time));
  return Math.min(...times.filter((time) => time > since));
}

/** The first event that was sent after everything is well again. */
async function untilAccepted(sender: Sender, since: number): Promise<void> {
  await waitFor(() => sender.answers.some(({ sentAt, status }) => sentAt > since + 1_000 && status === 200), {
    timeoutMs: 60_000,
  });
}

async function returnRedis(deployment: Deployment): Promise<void> {
  const primary = await primaryService(deployment);
  await deployment.compose("up", "--detach", "--no-recreate", "redis", "redis-2", "redis-3");
  const others = ["redis", "redis-2", "redis-3"].filter((name) => name !== primary);
  for (const name of others)
    await waitFor(
      async () => {
        const info = await deployment.compose("exec", "--no-TTY", name, "redis-cli", "info", "replication");
        assert.match(info, /role:slave/, name);
        assert.match(info, /master_link_status:up/, name);
      },
      { timeoutMs: 60_000 },
    );
}

async function loseQuorum(deployment: Deployment): Promise<void> {
  await deployment.compose("stop", "sentinel-1", "sentinel-3");
  // In lines of 80 characters.
  const sentence = /Too few sentinels could replace\s+Redis' primary/;
  for (const command of ["status", "doctor"]) await assert.rejects(deployment.ops(command), sentence);
  await deployment.compose("start", "sentinel-1", "sentinel-3");
  await waitFor(async () => assert.doesNotMatch(await deployment.ops("status").catch(String), sentence), {
    timeoutMs: 60_000,
  });
}

/** The commands of docs/operations/grow.md. */
async function losePostgres(deployment: Deployment): Promise<void> {
  const page = "docs/operations/grow.md";
  await deployment.typeDocumented(page, "pg_ctl promote");
  await deployment.typeDocumented(page, "docker volume rm");
  await deployment.untilHealthy("postgres", 120_000);
  await waitFor(
    async () => {
      const states = await deployment.query("select sync_state from pg_stat_replication", "postgres-2");
      assert.deepEqual(states, ["sync"]);
    },
    { timeoutMs: 60_000 },
  );
  await sleep(2_000);
}
