import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { createCertificate } from "@booking-events/scripts/certificates";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readRuleGroups } from "./alert-rules.ts";
import { postOnce } from "./post-event.ts";
import { type Prometheus, startPrometheus } from "./prometheus.ts";
import { printedByOps } from "./run-ops.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-dashboard-tests-01234567";
const secretOnHold = "a-secret-of-the-dashboard-tests-on-hold-0";
const weekMs = 7 * 86_400_000;

interface Dashboard {
  title: string;
  panels: { title: string; targets?: { expr: string }[] }[];
}

const dashboards: Dashboard[] = globSync("deploy/observability/dashboards/*.json").map((file) =>
  JSON.parse(readFileSync(file, "utf8")),
);
/** The panel of each query. */
const queries = new Map(
  dashboards.flatMap(({ title, panels }) =>
    panels.flatMap((panel) => (panel.targets ?? []).map(({ expr }) => [expr, `${title}: ${panel.title}`] as const)),
  ),
);
const rules = readRuleGroups().flatMap((group) => group.rules);
const hasPrometheus = (await findOrInstallTool("prometheus", { say: console.log })) !== undefined;

describe.skipIf(!hasPrometheus)("with a Prometheus that scrapes ingest, worker and webhooks under load", () => {
  const own = useOwnServices(secret);
  let prometheus: Prometheus;
  let apps: RunningApp[];
  const stopping = new AbortController();
  let sending: Promise<void> = Promise.resolve();

  beforeAll(async () => {
    const environment = await switchRedisTlsOn();
    writePartnersFile(environment["PARTNERS_FILE"] ?? "", [
      partner("acme", { [secret]: new Date(Date.now() + weekMs).toISOString() }),
      partner("globe", { [secretOnHold]: null }, { held: true }),
      partner("tester", {}, { test: true }),
    ]);
    const [ingest, worker] = await Promise.all([
      own.start("ingest", { environment }),
      own.start("worker", { environment }),
    ]);
    await refuseToApply();
    const lookup = await own.start("lookup", { environment });
    const webhooks = await startPosting(`${lookup.url}/no-such-path`);
    sending = keepSending(ingest);
    await fetch(`${lookup.url}/booking-event/receipt/${secret}/00000000-0000-7000-8000-000000000000`);
    prometheus = await startPrometheus({
      dir: join(own.folder, "prometheus"),
      jobs: { ingest: [ingest.adminPort], worker: [worker.adminPort], webhooks: [webhooks.adminPort] },
      interval: "500ms",
      groups: readRuleGroups(),
      backfill: aWeekAgo("namespace_partner:ingest_requests:rate5m", { partner: "acme" }),
    });
    apps = [ingest, worker, lookup, webhooks];
  });

  afterAll(() => prometheus?.stop());

  // In one test, because the end of a test stops the apps.
  test("every query of every panel returns data, and the rules and panels use metrics that exist", async () => {
    expect(queries.size).toBeGreaterThan(50);
    const missing = new Map(queries);
    await waitFor(
      async () => {
        for (const expr of missing.keys()) {
          const samples = await prometheus.query(replaceVariables(expr));
          if (samples.some(({ value }) => !Number.isNaN(value))) missing.delete(expr);
        }
        expect(Object.fromEntries(missing)).toEqual({});
      },
      // The rules have an interval of 15 s, and the alert needs a dead letter, which the worker counts after a while.
      { timeoutMs: 90_000, intervalMs: 200 },
    );
    stopping.abort();
    await sending;
    const recorded = rules.flatMap(({ record }) => record ?? []);
    const exported = (await Promise.all(apps.map((app) => app.metrics()))).flatMap(namesIn);
    const known = new Set([...exported, ...recorded, "up", "ALERTS", "probe_ssl_earliest_cert_expiry"]);
    const used = new Set([...queries.keys(), ...rules.map(({ expr }) => expr)].flatMap(findMetrics));
    expect(used.size).toBeGreaterThan(40);
    expect([...used].filter((name) => !known.has(name))).toEqual([]);
  });

  async function switchRedisTlsOn(): Promise<Record<string, string>> {
    const { certificate, key } = await createCertificate();
    const [certificateFile, keyFile] = [join(own.folder, "redis.crt"), join(own.folder, "redis.key")];
    writeFileSync(certificateFile, certificate);
    writeFileSync(keyFile, key, { mode: 0o600 });
    const admin = new Redis(own.redis.url);
    const port = await freePort();
    const files = { "tls-cert-file": certificateFile, "tls-key-file": keyFile, "tls-auth-clients": "no" };
    await admin.config("SET", ...Object.entries(files).flat());
    await admin.config("SET", "tls-port", String(port));
    admin.disconnect();
    const url = new URL(own.redis.url.replace(/^redis:/, "rediss:"));
    Object.assign(url, { hostname: "localhost", port });
    return { ...own.environment, REDIS_URL: url.href, NODE_EXTRA_CA_CERTS: certificateFile };
  }

  /** POISON becomes a dead letter at once, WRONG is tried again, and a reader of the feed is behind. */
  async function refuseToApply(): Promise<void> {
    await own.pool.query("insert into feed_readers (name, last_id) values ('arrivals', 0)");
    await own.pool.query(`
      alter table bookings
        add constraint poison check (reference not like 'POISON%' or 1 / (0 * length(reference)) = 0),
        add constraint wrong check (reference not like 'WRONG%')`);
  }

  /** To a subscriber that refuses everything. */
  async function startPosting(url: string): Promise<RunningApp> {
    const environment = { ...own.environment, WEBHOOKS_ALLOW_PRIVATE: "true" };
    await printedByOps(["subscriptions", "add", "hook", "--url", url], environment);
    return own.start("webhooks", { environment });
  }

  /** Sends what shows in each panel: accepted and refused events, a dead letter, a warning, an unknown secret, a hold. */
  async function keepSending(ingest: RunningApp): Promise<void> {
    const send = async (fields: object, headers = {}, by = secret) => {
      const response = await postOnce(ingest, { secret: by, kind: "update", fields, headers });
      await response.body?.cancel();
    };
    for (let number = 0; !stopping.signal.aborted; number += 1) {
      await send({
        consumerTripPartnerExternalReference: `TRIP-${number}`,
        loyaltyTier: "gold",
        consumerPhone: "07911 123456",
      });
      await send({ consumerTripPartnerExternalReference: "TRIP", number }, { "Idempotency-Key": "the-same" });
      await send({ consumerTripPartnerExternalReference: `POISON-${number}` });
      await send({ consumerTripPartnerExternalReference: `WRONG-${number}` });
      await send({ consumerPhone: null });
      await send({}, {}, "a-secret-of-nobody");
      await send({}, {}, secretOnHold);
      await sleep(100, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }
});

/** A series with a value in each minute of an hour, a week ago. */
function aWeekAgo(name: string, labels: Record<string, string>): string {
  const text = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const endS = Math.floor((Date.now() - weekMs) / 1_000);
  const times = Array.from({ length: 61 }, (_, minute) => endS - 3_600 + minute * 60);
  return `# TYPE ${name} gauge\n${times.map((time) => `${name}{${text.join(",")}} 1 ${time}\n`).join("")}`;
}

/** As Grafana does. */
function replaceVariables(expression: string): string {
  const values = { __rate_interval: "10s", __range: "1m", namespace: ".*", partner: ".*" };
  return expression.replaceAll(/\$(\w+)/g, (_, name: string) => {
    expect(values).toHaveProperty(name);
    return values[name as keyof typeof values];
  });
}

function namesIn(metrics: string): string[] {
  return metrics.match(/^\w+/gm) ?? [];
}

const notMetrics = new Set(
  "sum min max avg count by on without and or unless bool offset rate increase time".split(" "),
);

/** The names in an expression that are neither labels, nor their values, nor words of PromQL. */
function findMetrics(expression: string): string[] {
  const bare = expression
    .replaceAll(/"[^"]*"/g, "")
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, "")
    .replaceAll(/\b(by|on|without) \([^)]*\)/g, "")
    .replaceAll(/\b\w+\(/g, "(")
    .replaceAll(/\boffset \w+/g, "");
  return (bare.match(/[a-zA-Z_:][\w:]*/g) ?? []).filter((word) => !notMetrics.has(word));
}
