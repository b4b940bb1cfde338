import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { Network } from "@booking-events/harness/network";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";
import { freePort } from "@booking-events/scripts/ports";
import { findOrInstallTool, type PostgresServer, startPostgres, startRedis } from "@booking-events/scripts/services";
import type pg from "pg";
import type { Build } from "./builds.ts";
import { createPool } from "./database.ts";
import { enterByProxy, enterDirectly } from "./entrance.ts";
import { FakeClocks, readPostgresClock, readProcessClock, readRedisClock } from "./fake-clocks.ts";
import type { AppName, ProcessName, TargetName } from "./fault-plan.ts";
import type { FaultTarget } from "./inject-faults.ts";
import type { MachineFault } from "./machine-faults.ts";
import { startPostgresPair } from "./postgres-pair.ts";
import { serveTls } from "./postgres-tls.ts";
import { type RedisEngineName, redisEngines } from "./redis-engines.ts";
import { operateWith } from "./run-ops.ts";
import { SupervisedApp } from "./supervise.ts";

/** Beside the partners of the run. */
export const testPartner = "on-trial";
const testSecret = "a-secret-of-the-test-partner-of-a-chaos-run";
const queuePrefix = "{chaos}";
const duplicateWindowHours = 72;
const delayMs = { least: 5, most: 50 };
/** With the prefix of the queue, these are on all three primaries of a new cluster. */
const shardsOfCluster = 4;

export interface SystemOptions {
  dir: string;
  build: Build;
  appNames: readonly AppName[];
  partners: readonly string[];
  /** Of each partner; none by default. */
  rateLimit?: typeof noLimit;
  /** Where Caddy is, if it shall stand before ingest and lookup. */
  proxyProgram?: string | undefined;
  /** TLS to PostgreSQL, whose certificate can expire, and a clock for each server and process: both cost time. Default: neither. */
  isForFaults?: boolean;
  /** Default: one Redis. */
  redis?: RedisEngineName | undefined;
  /** Of them, replicas that must have an event before it is accepted. Default: 0. */
  replicasToConfirm?: number | undefined;
  /** Default: one PostgreSQL. */
  postgres?: "standby" | undefined;
  /** Between machines that replicate. */
  delayMs?: { least: number; most: number } | undefined;
  say: (line: string) => void;
  signal: AbortSignal;
  /** Told when an app ends by itself. */
  onCrash: (what: string) => void;
}

export type System = Awaited<ReturnType<typeof startSystem>>;

/** Starts Redis, PostgreSQL and the apps on ports of their own, with data and logs in `dir`. */
export async function startSystem(options: SystemOptions) {
  const { dir, appNames, partners, rateLimit = noLimit, proxyProgram } = options;
  // When something does not start, this stops what runs already.
  await using started = new AsyncDisposableStack();
  const network = started.adopt(new Network({ delayMs: options.delayMs ?? delayMs }), (it) => it.close());
  const clocks = started.adopt(await createClocks(options), (all) => all?.remove());
  const redis = await startRedisFor(options, network, clocks, started);
  const postgres = await startPostgresFor(options, network, clocks, started);
  const { pool } = postgres;

  const partnersFile = join(dir, "partners.json");
  const limits = Object.fromEntries(partners.map((id) => [id, rateLimit]));
  const secretOf = writeNewPartners(partnersFile, limits, [
    partner(testPartner, { [testSecret]: null }, { rateLimit: noLimit, test: true }),
  ]);
  const environment = {
    ...redis.environment,
    ...postgres.environment,
    PARTNERS_FILE: partnersFile,
    QUEUE_PREFIX: queuePrefix,
    WEBHOOKS_ALLOW_PRIVATE: "true",
  };
  await mkdir(join(dir, "log"));
  const apps = await startApps(options, environment, clocks, started);
  const entrance =
    proxyProgram === undefined ? enterDirectly(apps) : started.use(await enterByProxy(proxyProgram, apps));

  const running = started.move();
  return {
    /** Starts a worker and a lookup that share everything with the others but the database. */
    startStranger: (databaseUrl: string) =>
      startStrangers(options, { ...environment, DATABASE_URL: databaseUrl }, running),
    operate: operateWith(options.build.ops, environment),
    postgres: postgres.server,
    databaseUrl: postgres.url,
    /** Connects to it. */
    pool,
    /** Of the only Redis, when it started. */
    redisPid: redis.pid ?? 0,
    locateShards: redis.locateShards,
    shards: redis.shards,
    /** Of servers with replicas. */
    machineFaults: [...redis.faults, ...postgres.faults],
    duplicateWindowMs: duplicateWindowHours * 3_600_000,
    apps,
    entrance,
    partnersFile,
    secretOf: (id: string) => (id === testPartner ? testSecret : (secretOf[id] ?? "")),
    /** What the apps have logged so far. */
    readLogs: () => Promise.all(appNames.map((name) => readFile(logPathOf(dir, name), "utf8"))),
    targets: new Map<TargetName, FaultTarget>([
      ...apps.map((app) => [app.name as AppName, app] as const),
      ...(redis.target === undefined ? [] : [["redis", redis.target] as const]),
      ...(postgres.target === undefined ? [] : [["postgres", postgres.target] as const]),
    ]),
    /** Undefined: this machine has no libfaketime, or servers have replicas. */
    clocks,
    presentExpired: postgres.presentExpired,
    stop: () => running.disposeAsync(),
  };
}

async function createClocks(options: SystemOptions): Promise<FakeClocks | undefined> {
  const { isForFaults = false, redis, postgres } = options;
  if (!isForFaults || redis !== undefined || postgres !== undefined) return undefined;
  const faketime = await findOrInstallTool("faketime", options);
  return faketime === undefined ? undefined : new FakeClocks(faketime);
}

async function startApps(
  options: SystemOptions,
  environment: Record<string, string>,
  clocks: FakeClocks | undefined,
  started: AsyncDisposableStack,
): Promise<SupervisedApp[]> {
  const addressOf = options.proxyProgram === undefined ? freeAddress : await addressesBehindProxy();
  const apps: SupervisedApp[] = [];
  for (const name of options.appNames) {
    const app = await startApp(name, options, environment, { clocks, ...(await addressOf(name)) });
    started.defer(() => app.stop());
    apps.push(app);
  }
  return apps;
}

async function startStrangers(
  options: SystemOptions,
  environment: Record<string, string>,
  running: AsyncDisposableStack,
) {
  const apps: SupervisedApp[] = [];
  for (const name of ["stranger-worker", "stranger-lookup"] as const) {
    const app = await startApp(name, options, environment, await freeAddress());
    running.defer(() => app.stop());
    apps.push(app);
  }
  return { apps, operate: operateWith(options.build.ops, environment) };
}

interface Address {
  host: string;
  port: number;
  adminPort: number;
}

async function freeAddress(): Promise<Address> {
  return { host: "127.0.0.1", port: await freePort(), adminPort: await freePort() };
}

/** Caddy looks for the health of all ingests at the same port, so each has a host of its own. */
async function addressesBehindProxy(): Promise<(name: AppName) => Promise<Address>> {
  const shared = await freeAddress();
  return async (name) => {
    const number = /^ingest-(\d)$/.exec(name)?.[1];
    return number === undefined ? freeAddress() : { ...shared, host: `127.0.0.${number}` };
  };
}

async function startApp(
  name: ProcessName,
  { dir, build, proxyProgram, onCrash }: SystemOptions,
  environment: Record<string, string>,
  { clocks, ...address }: Address & { clocks?: FakeClocks | undefined },
): Promise<SupervisedApp> {
  const program = build[/ingest|worker|lookup|webhooks/.exec(name)?.[0] as "ingest" | "worker" | "lookup" | "webhooks"];
  return new SupervisedApp({
    ...address,
    name,
    program: await bundleProgram(program),
    environment: {
      ...environment,
      ...(hasOwnClock(name) ? await clocks?.add(name, () => readProcessClock(address.adminPort)) : {}),
      ...(proxyProgram !== undefined && { TRUSTED_PROXY_HOPS: "1" }),
      DUPLICATE_WINDOW_HOURS: String(duplicateWindowHours),
    },
    logPath: logPathOf(dir, name),
    onCrash,
  });
}

/** Its clock can be set. */
function hasOwnClock(name: ProcessName): name is AppName {
  return !/^(?:stranger|webhooks)-/.test(name);
}

function logPathOf(dir: string, name: ProcessName): string {
  return join(dir, "log", `${name}.log`);
}

interface Redises {
  environment: Record<string, string>;
  pid?: number;
  shards: number;
  locateShards: () => Promise<{ redisUrl: string; prefix: string }[]>;
  /** One Redis, without a replica. */
  target?: FaultTarget;
  faults: MachineFault[];
}

async function startRedisFor(
  options: SystemOptions,
  network: Network,
  clocks: FakeClocks | undefined,
  started: AsyncDisposableStack,
): Promise<Redises> {
  const { dir, signal } = options;
  if (options.redis !== undefined) {
    const prefixes = shardPrefixes(options.redis === "cluster" ? shardsOfCluster : 1);
    const engine = await redisEngines[options.redis]({ ...options, network, prefixes });
    started.defer(engine.stop);
    return {
      environment: {
        ...engine.environment,
        ...(prefixes.length > 1 && { QUEUE_SHARDS: String(prefixes.length) }),
        REDIS_REPLICAS_TO_CONFIRM: String(options.replicasToConfirm ?? 0),
      },
      shards: prefixes.length,
      locateShards: () =>
        Promise.all(prefixes.map(async (prefix) => ({ redisUrl: await engine.urlOf(prefix), prefix }))),
      faults: engine.faults,
    };
  }
  const environment = (await clocks?.add("redis", () => readRedisClock(redis.url))) ?? {};
  const redis = await startRedis({ dir: join(dir, "redis"), port: await freePort(), environment, signal });
  started.defer(redis.stop);
  return {
    environment: { REDIS_URL: redis.url },
    pid: redis.pid,
    shards: 1,
    locateShards: async () => [{ redisUrl: redis.url, prefix: queuePrefix }],
    target: redis,
    faults: [],
  };
}

interface Postgreses {
  server: PostgresServer;
  environment: Record<string, string>;
  /** For TLS, if there is TLS. */
  url: string;
  pool: pg.Pool;
  /** One PostgreSQL, without a standby. */
  target?: FaultTarget;
  presentExpired?: (forMs: number, signal: AbortSignal) => Promise<void>;
  faults: MachineFault[];
}

async function startPostgresFor(
  { dir, isForFaults = false, postgres: wanted, signal }: SystemOptions,
  network: Network,
  clocks: FakeClocks | undefined,
  started: AsyncDisposableStack,
): Promise<Postgreses> {
  const connect = (url: string) => started.adopt(createPool(url), (pool) => pool.end());
  if (wanted === "standby") {
    const { stop, ...pair } = await startPostgresPair({ dir, network });
    started.defer(stop);
    return { ...pair, pool: connect(pair.url) };
  }
  const environment = (await clocks?.add("postgres", () => readPostgresClock(admin))) ?? {};
  const server = await startPostgres({ dir: join(dir, "postgres"), port: await freePort(), environment, signal });
  started.defer(server.stop);
  const admin = connect(server.url);
  const tls = isForFaults ? await serveTls(server, admin, dir) : undefined;
  const url = tls?.url ?? server.url;
  const pool = tls === undefined ? admin : connect(url);
  return {
    server,
    environment: { DATABASE_URL: url },
    url,
    pool,
    target: server,
    ...(tls && { presentExpired: (forMs: number, stopping: AbortSignal) => tls.presentExpired(pool, forMs, stopping) }),
    faults: [],
  };
}

/** As the documentation names them. */
function shardPrefixes(count: number): string[] {
  return Array.from({ length: count }, (_, shard) => (shard === 0 ? queuePrefix : `{chaos-${shard}}`));
}
