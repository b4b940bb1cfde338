import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, waitFor } from "@booking-events/harness";
import { FakeClock } from "@booking-events/harness/fake-clock";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { changeQueue } from "@booking-events/queue";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readRuleGroups, speedUp } from "./alert-rules.ts";
import { postOnce } from "./post-event.ts";
import { type Prometheus, startPrometheus } from "./prometheus.ts";
import { runOps } from "./run-ops.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

/** A minute takes two seconds, so the rate over five minutes has several scrapes. */
const speed = 30;
/** A process waits for a frozen Redis or PostgreSQL for a second, and then answers the scrape. */
const scrapeInterval = "1500ms";
/** Maintenance is every ten minutes, and durations that are not in the rules are not divided. */
const excluded = "MaintenanceStale";
const settleMs = 15_000;
/** Longer than all durations of the rules that lead to an alert here, with some scrapes. */
const fireWithinMs = 60_000;
/** Half an hour of the rules, in which a budget was burnt, takes a minute. */
const endWithinMs = 120_000;

const secret = "a-secret-of-the-mutation-tests-012345678";
const otherSecret = "a-secret-of-the-other-partner-0123456789";

const faketime = await findOrInstallTool("faketime", { say: console.log });
const hasPrometheus = (await findOrInstallTool("prometheus", { say: console.log })) !== undefined;
let postgresClock: FakeClock | undefined;

const own = useOwnServices(secret, {}, async () => {
  postgresClock = faketime === undefined ? undefined : await FakeClock.create(faketime, "postgres");
  return { redis: {}, postgres: postgresClock?.environment ?? {} };
});
let admin: Redis;
let ingest: RunningApp;
let workers: RunningApp[];
let prometheus: Prometheus;
let load: Load;
let runs = 0;

beforeAll(() => {
  admin = new Redis(own.redis.url);
  admin.on("error", () => {});
});

afterAll(async () => {
  admin?.disconnect();
  await postgresClock?.remove();
});

beforeEach(async () => {
  await admin.flushall();
  writePartners({ acme: null, zenith: null });
  [ingest, ...workers] = await Promise.all([own.start("ingest"), own.start("worker"), own.start("worker")]);
});

function writePartners(expiries: Record<"acme" | "zenith", string | null>): void {
  writePartnersFile(own.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: expiries.acme }, { rateLimit: noLimit }),
    partner("zenith", { [otherSecret]: expiries.zenith }, { rateLimit: noLimit }),
  ]);
}

interface Fault {
  breaks: string;
  alert: string;
  begin: () => Promise<unknown> | unknown;
  /** Repairs it. Without it, the fault is that the test ends. */
  end?: () => Promise<unknown> | unknown;
  /** What Prometheus knows from before. */
  history?: () => string;
}

describe.skipIf(!hasPrometheus).each<Fault>([
  {
    breaks: "all workers stop",
    alert: "AllWorkersGone page",
    begin: () => Promise.all(workers.map((worker) => worker.stop("SIGTERM"))),
    end: () => restartWorkers(),
  },
  {
    breaks: "PostgreSQL freezes",
    alert: "DatabaseDown page",
    begin: () => own.postgres.kill("SIGSTOP"),
    end: () => own.postgres.kill("SIGCONT"),
  },
  {
    breaks: "Redis freezes",
    alert: "RedisDown page",
    begin: () => own.redis.kill("SIGSTOP"),
    end: () => own.redis.kill("SIGCONT"),
  },
  {
    breaks: "something else fills Redis",
    alert: "RedisMemoryHigh page",
    async begin() {
      await admin.config("SET", "maxmemory", "100mb");
      await admin.setrange("{something-else}", 72_000_000, "x");
    },
    async end() {
      await admin.del("{something-else}");
      await admin.config("SET", "maxmemory", "0");
    },
  },
  {
    breaks: "Redis no longer waits for its disk",
    alert: "RedisNotDurable page",
    begin: () => admin.config("SET", "appendfsync", "everysec"),
    end: () => admin.config("SET", "appendfsync", "always"),
  },
  {
    breaks: "ingest ends",
    alert: "IngestGone page",
    begin: () => ingest.stop("SIGKILL"),
    end: () => own.start("ingest", { environment: portsOf(ingest) }),
  },
  {
    breaks: "an operator pauses the queue",
    alert: "QueuePaused info",
    begin: () => setPaused(true),
    end: () => setPaused(false),
  },
  {
    breaks: "the last sequence number is far ahead, so ingest refuses events",
    alert: "AcceptErrorBudgetBurn page",
    begin: () => admin.set("{booking-events}:sequence", String((Date.now() + 3_600_000) * 1_000)),
    end: () => admin.set("{booking-events}:sequence", String(Date.now() * 1_000)),
  },
  {
    breaks: "somebody keeps a lock that every transaction needs",
    alert: "OldestEventWaits page",
    begin: () => lockFeed(),
    end: () => releaseFeed?.(),
  },
  {
    breaks: "one of the workers does not reach PostgreSQL",
    alert: "DependencyPaused ticket dependency=postgresql",
    begin: () => loseWorker(),
    end: async () => {
      await workers[0]?.stop("SIGKILL");
      await restartWorkers();
    },
  },
  {
    breaks: "an event is poison",
    alert: "DeadLettersOpen ticket code=22012",
    begin: () => poison(),
    end: () => own.pool.query("delete from dead_letters"),
  },
  {
    breaks: "the log begins tomorrow, so events are older than it",
    alert: "EventsExpired page partner=acme",
    begin: () =>
      own.pool.query(
        `alter table log_retention drop constraint log_retention_horizon_check;
         update log_retention set horizon = now() + interval '1 day'`,
      ),
    end: () => own.pool.query("update log_retention set horizon = null"),
  },
  ...(faketime === undefined
    ? []
    : [
        {
          breaks: "the clock of PostgreSQL goes wrong",
          alert: "ClocksDiffer ticket",
          begin: () => postgresClock?.set(120_000),
          end: () => postgresClock?.set(0),
        },
      ]),
  {
    breaks: "somebody guesses secrets",
    alert: "SecretGuessing ticket",
    begin: () => load.set("guesses", 100),
    end: () => load.set("guesses", 0),
  },
  {
    breaks: "a partner is silent at a time at which it never was",
    alert: "PartnerSilent ticket partner=zenith",
    begin: () => {},
    end: () => load.set("zenith", 10),
    history: () => aWeekOf("namespace_partner:ingest_requests:rate5m", { partner: "zenith" }),
  },
  {
    breaks: "a partner sends garbage",
    alert: "PartnerRefusalsJumped ticket partner=acme",
    begin: () => load.set("garbage", 20),
    end: () => load.set("garbage", 0),
  },
  {
    breaks: "the last secret of a partner is about to expire",
    alert: "SecretExpires ticket partner=zenith",
    begin: () => writePartners({ acme: null, zenith: new Date(Date.now() + 3_600_000).toISOString() }),
    end: () => writePartners({ acme: null, zenith: null }),
  },
])("$breaks", ({ alert, begin, end, history }) => {
  test(`exactly ${alert} fires, and ends`, { timeout: 300_000 }, async () => {
    load = startLoad(ingest);
    runs += 1;
    prometheus = await startPrometheus({
      dir: join(own.folder, `prometheus-${runs}`),
      jobs: { ingest: [ingest.adminPort], worker: workers.map(({ adminPort }) => adminPort) },
      interval: scrapeInterval,
      groups: speedUp(readRuleGroups(), speed).map((group) => ({
        ...group,
        rules: group.rules.filter((rule) => rule.alert !== excluded),
      })),
      ...(history === undefined ? {} : { backfill: history() }),
    });
    // Before the first scrape, nothing is up.
    await waitFor(async () => expect(await prometheus.query("up == 1")).toHaveLength(3));
    await waitFor(async () => expect(await prometheus.firing()).toEqual([]));
    const watch = watchAlerts(prometheus);
    try {
      await sleep(settleMs);
      if (history === undefined) expect(watch.seen()).toEqual([]);
      await begin();
      await waitFor(() => watch.seen().length > 0, { timeoutMs: fireWithinMs });
      // Whatever follows from the fault has time to fire, too.
      await sleep(settleMs);
      await end?.();
      await waitFor(async () => expect(await prometheus.firing()).toEqual([]), { timeoutMs: endWithinMs });
      await sleep(settleMs);
      expect(watch.seen()).toEqual([alert]);
    } finally {
      await end?.();
      await watch.stop();
      await load.stop();
      await prometheus.stop();
    }
  });
});

/** Retries take as long as they do, so these alerts need the time of production. */
test.skipIf(!hasPrometheus)(
  "when every event fails, two alerts fire within two minutes, and the events are applied once it is fixed",
  { timeout: 600_000 },
  async () => {
    load = startLoad(ingest);
    prometheus = await startPrometheus({
      dir: join(own.folder, "prometheus-of-failures"),
      jobs: { ingest: [ingest.adminPort], worker: workers.map(({ adminPort }) => adminPort) },
      interval: "15s",
      groups: readRuleGroups(),
    });
    try {
      await waitFor(async () => expect(await prometheus.query("up == 1")).toHaveLength(3), { timeoutMs: 60_000 });
      expect(await prometheus.firing()).toEqual([]);
      // What the worker probes PostgreSQL with is not refused, so it is no outage.
      await own.pool.query("alter table bookings add constraint broken check (partner = 'probe') not valid");
      await waitFor(
        async () =>
          expect(await prometheus.firing()).toEqual(["AttemptsFail page code=23514", "OldestEventWaits page"]),
        { timeoutMs: 120_000 },
      );
      await load.stop();
      await own.pool.query("alter table bookings drop constraint broken");
      const first = JSON.parse((await runOps(["queue", "retry-now", "--json"], own.environment)).stdout);
      expect(first.retried).toBeGreaterThan(100);
      // Those that a worker held meanwhile may have failed since.
      await waitFor(async () => {
        const { stdout } = await runOps(["queue", "retry-now", "--json"], own.environment);
        expect(JSON.parse(stdout)).toMatchObject({ delayed: 0 });
      });
      const { rows } = await own.pool.query("select count(*)::integer as count from dead_letters");
      expect(rows).toEqual([{ count: 0 }]);
      const inQueue = "sum(max by (state) (booking_events_backlog))";
      await waitFor(async () => expect(await prometheus.query(inQueue)).toMatchObject([{ value: 0 }]), {
        timeoutMs: 60_000,
      });
      await waitFor(async () => expect(await prometheus.firing()).toEqual([]), { timeoutMs: 180_000 });
    } finally {
      await own.pool.query("alter table bookings drop constraint if exists broken");
      await load.stop();
      await prometheus.stop();
    }
  },
);

function watchAlerts({ firing }: Prometheus) {
  const seen = new Set<string>();
  const stopping = new AbortController();
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      for (const alert of await firing()) seen.add(alert);
      await sleep(250, undefined, { signal: stopping.signal }).catch(() => {});
    }
  })();
  return {
    seen: () => [...seen],
    stop() {
      stopping.abort();
      return watching;
    },
  };
}

type Kind = "acme" | "zenith" | "garbage" | "guesses";

interface Load {
  /** How many requests a second. */
  set(kind: Kind, perSecond: number): void;
  stop(): Promise<unknown>;
}

/** Requests of partners and strangers, whose answers do not matter. */
function startLoad(target: RunningApp): Load {
  const perSecond: Record<Kind, number> = { acme: 20, zenith: 0, garbage: 0, guesses: 0 };
  const stopping = new AbortController();
  let sent = 0;
  const send = async (by: string, fields: object) => {
    sent += 1;
    const response = await postOnce(target, { secret: by, kind: "update", fields });
    await response.body?.cancel();
  };
  const sendOne: Record<Kind, () => Promise<void>> = {
    acme: () => send(secret, { consumerTripPartnerExternalReference: `TRIP-${sent % 100}`, sent }),
    zenith: () => send(otherSecret, { consumerTripPartnerExternalReference: `TRIP-${sent % 100}`, sent }),
    garbage: () => send(secret, { consumerPhone: null }),
    guesses: () => send(`a-secret-of-nobody-${sent}`, {}),
  };
  const sending = (Object.keys(perSecond) as Kind[]).map(async (kind) => {
    while (!stopping.signal.aborted) {
      const rate = perSecond[kind];
      if (rate > 0) void sendOne[kind]().catch(() => {});
      await sleep(rate > 0 ? 1_000 / rate : 100, undefined, { signal: stopping.signal }).catch(() => {});
    }
  });
  return {
    set(kind, rate) {
      perSecond[kind] = rate;
    },
    stop() {
      stopping.abort();
      return Promise.all(sending);
    },
  };
}

/** A process that takes the place of another one must be where Prometheus looks for it. */
function portsOf({ port, adminPort }: RunningApp): Record<string, string> {
  return { PORT: String(port), ADMIN_PORT: String(adminPort) };
}

async function restartWorkers(): Promise<void> {
  workers = await Promise.all(
    workers.map((worker) => {
      if (worker.child.exitCode === null && worker.child.signalCode === null) return worker;
      return own.start("worker", { environment: { ADMIN_PORT: String(worker.adminPort) } });
    }),
  );
}

let releaseFeed: (() => Promise<void>) | undefined;

async function lockFeed(): Promise<void> {
  const holder = await own.pool.connect();
  // Our pools end transactions that do nothing for long.
  await holder.query("begin; set local idle_in_transaction_session_timeout to 0");
  await holder.query("select from feed_position for update");
  releaseFeed = async () => {
    releaseFeed = undefined;
    await holder.query("rollback");
    holder.release();
  };
}

/** Replaces a worker by one with a wrong URL. */
async function loseWorker(): Promise<void> {
  const [worker, ...others] = workers;
  if (worker === undefined) return;
  await worker.stop("SIGTERM");
  const url = Object.assign(new URL(own.postgres.url), { port: String(await freePort()) }).href;
  const environment = { ADMIN_PORT: String(worker.adminPort), DATABASE_URL: url };
  workers = [await own.start("worker", { environment, isReady: false }), ...others];
}

async function setPaused(isPaused: boolean): Promise<void> {
  await changeQueue({ redisServers: own.redis.url, prefix: "{booking-events}", shardCount: 1 }, { isPaused });
}

async function poison(): Promise<void> {
  await own.pool.query(`
    alter table bookings drop constraint if exists poison,
      add constraint poison check (reference not like 'POISON%' or 1 / (0 * length(reference)) = 0)`);
  await postOnce(ingest, { secret, reference: "POISON" });
}

/** Eight days up to an hour ago, in the time of the rules. */
function aWeekOf(name: string, labels: Record<string, string>): string {
  const text = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const stepS = 10;
  const count = (8 * 86_400) / speed / stepS;
  const endS = Math.floor(Date.now() / 1_000) - 3_600 / speed;
  const times = Array.from({ length: count }, (_, index) => endS - (count - index) * stepS);
  return `# TYPE ${name} gauge\n${times.map((time) => `${name}{${text.join(",")}} 1 ${time}\n`).join("")}`;
}
