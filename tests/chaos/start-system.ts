import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";
import { freePort } from "@booking-events/scripts/ports";
import { type DataServer, findFaketime, startPostgres, startRedis } from "@booking-events/scripts/services";
import type { Build } from "./builds.ts";
import { createPool } from "./database.ts";
import type { AppName, TargetName } from "./fault-plan.ts";
import type { FaultTarget } from "./inject-faults.ts";
import { serveTls } from "./postgres-tls.ts";
import { createRedisClock, removeSharedMemory } from "./redis-clock.ts";
import { superviseApp } from "./supervise.ts";

const queuePrefix = "{chaos}";
const duplicateWindowHours = 72;

export interface SystemOptions {
  dir: string;
  build: Build;
  appNames: readonly AppName[];
  partners: readonly string[];
  /** Of each partner; none by default. */
  rateLimit?: typeof noLimit;
  /** TLS to PostgreSQL, whose certificate can expire, and a clock of Redis' own: both cost time. Default: neither. */
  isForFaults?: boolean;
  signal: AbortSignal;
  /** Told when an app ends by itself. */
  onCrash: (what: string) => void;
}

export type System = Awaited<ReturnType<typeof startSystem>>;

/** Starts Redis, PostgreSQL and the apps on ports of their own, with data and logs in `dir`. */
export async function startSystem(options: SystemOptions) {
  const { dir, build, appNames, partners, rateLimit = noLimit, isForFaults = false, signal, onCrash } = options;
  // When something does not start, this stops what runs already.
  await using started = new AsyncDisposableStack();
  const faketime = isForFaults ? findFaketime() : undefined;
  const clock = faketime === undefined ? undefined : await createRedisClock(dir, faketime);
  const { environment = {} } = clock ?? {};
  const redis = await startRedis({ dir: join(dir, "redis"), port: await freePort(), environment, signal });
  started.defer(redis.stop);
  await removeSharedMemory(redis.pid);
  const postgres = await startPostgres({ dir: join(dir, "postgres"), port: await freePort(), signal });
  started.defer(postgres.stop);
  const connect = (url: string) => started.adopt(createPool(url), (pool) => pool.end());
  const admin = connect(postgres.url);
  const tls = isForFaults ? await serveTls(postgres, admin, dir) : undefined;

  const partnersFile = join(dir, "partners.json");
  const secretOf = writeNewPartners(partnersFile, Object.fromEntries(partners.map((id) => [id, rateLimit])));
  await mkdir(join(dir, "log"));
  const logPathOf = (name: AppName) => join(dir, "log", `${name}.log`);
  const ingestUrls: string[] = [];
  const startApp = async (name: AppName) => {
    const port = await freePort();
    const isIngest = name.startsWith("ingest");
    if (isIngest) ingestUrls.push(`http://127.0.0.1:${port}`);
    const app = superviseApp({
      name,
      program: isIngest ? build.ingest : build.worker,
      environment: {
        REDIS_URL: redis.url,
        DATABASE_URL: tls?.url ?? postgres.url,
        QUEUE_PREFIX: queuePrefix,
        PARTNERS_FILE: partnersFile,
        DUPLICATE_WINDOW_HOURS: String(duplicateWindowHours),
        PORT: String(port),
      },
      adminPort: await freePort(),
      logPath: logPathOf(name),
      onCrash,
    });
    started.defer(app.stop);
    return app;
  };
  const pool = tls === undefined ? admin : connect(tls.url);
  const apps = [];
  for (const name of appNames) apps.push(await startApp(name));

  const running = started.move();
  return {
    redis,
    postgres,
    /** For TLS, if there is TLS. */
    databaseUrl: tls?.url ?? postgres.url,
    /** Connects to it. */
    pool,
    queuePrefix,
    duplicateWindowMs: duplicateWindowHours * 3_600_000,
    apps,
    ingestUrls,
    secretOf: (partner: string) => secretOf[partner] ?? "",
    /** What the apps have logged so far. */
    readLogs: () => Promise.all(appNames.map((name) => readFile(logPathOf(name), "utf8"))),
    targets: new Map<TargetName, FaultTarget>([
      ...apps.map((app): [TargetName, FaultTarget] => [app.name, app]),
      ["redis", { kill: redis.kill, ended: redis.ended, restart: () => restartRedis(redis) }],
      ["postgres", postgres],
    ]),
    /** Undefined: this machine has no libfaketime. */
    setRedisClock: clock && ((aheadMs: number, signal: AbortSignal) => clock.set(redis.url, aheadMs, signal)),
    presentExpired: tls && ((forMs: number, signal: AbortSignal) => tls.presentExpired(pool, forMs, signal)),
    stop: () => running.disposeAsync(),
  };
}

async function restartRedis(redis: DataServer): Promise<void> {
  await redis.restart();
  await removeSharedMemory(redis.pid);
}
