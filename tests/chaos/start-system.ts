import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";
import { freePort } from "@booking-events/scripts/ports";
import {
  type DataServer,
  findFaketime,
  type PostgresServer,
  startPostgres,
  startRedis,
} from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import type { Build } from "./builds.ts";
import type { AppName } from "./fault-plan.ts";
import type { FaultTarget, FaultTargets } from "./inject-faults.ts";
import { type PostgresTls, serveTls } from "./postgres-tls.ts";
import { createRedisClock, type RedisClock, removeSharedMemory, untilClockShown } from "./redis-clock.ts";
import { type SupervisedApp, superviseApp } from "./supervise.ts";

/** Redis, PostgreSQL, two ingests and some workers, each of which may be hit. */
export interface System<Name extends AppName = AppName> {
  redisUrl: string;
  /** Over TLS, for the apps and for everyone else. */
  databaseUrl: string;
  /** False: this machine has no libfaketime, and `setClock` of the target does nothing. */
  canSetClock: boolean;
  queuePrefix: string;
  duplicateWindowMs: number;
  ingestUrls: string[];
  secretOf(partner: string): string;
  targets: Record<Name, FaultTarget> & Pick<FaultTargets, "redis" | "postgres">;
  apps: SupervisedApp[];
  /** What the apps have logged so far. */
  readLogs(): Promise<string[]>;
  redis: DataServer;
  postgres: DataServer;
  stop(): Promise<void>;
}

const queuePrefix = "{chaos}";
const duplicateWindowHours = 72;

export interface RateLimit {
  perSecond: number;
  burst: number;
}

export interface SystemOptions<Name extends AppName> {
  dir: string;
  build: Build;
  appNames: readonly Name[];
  partners: readonly string[];
  /** Of each partner; none by default. */
  rateLimit?: RateLimit;
  /** TLS to PostgreSQL, whose certificate can expire, and a clock of Redis' own: both cost time. Default: neither. */
  isForFaults?: boolean;
  signal: AbortSignal;
  /** Told when an app ends by itself. */
  onCrash: (what: string) => void;
}

/** Starts everything on ports of its own, with its data and logs in `dir`. */
export async function startSystem<Name extends AppName>(options: SystemOptions<Name>): Promise<System<Name>> {
  const { dir, build, appNames, partners, rateLimit = noLimit, signal, onCrash } = options;
  const faketime = options.isForFaults === true ? findFaketime() : undefined;
  const clock = faketime === undefined ? undefined : await createRedisClock(dir, faketime);
  const { environment = {} } = clock ?? {};
  const redis = await startRedis({ dir: join(dir, "redis"), port: await freePort(), environment, signal });
  let postgres: PostgresServer | undefined;
  try {
    await removeSharedMemory(redis.pid);
    await applyRedisSettings(redis, build);
    postgres = await startPostgres({ dir: join(dir, "postgres"), port: await freePort(), signal });
    const tls =
      options.isForFaults === true ? await serveTls(postgres, dir) : { ...postgres, presentExpired: neverExpires };
    return await startApps({ redis, postgres, tls });
  } catch (error) {
    await Promise.all([redis.stop(), postgres?.stop()]);
    throw error;
  }

  async function startApps(servers: {
    redis: DataServer;
    postgres: DataServer;
    tls: PostgresTls;
  }): Promise<System<Name>> {
    const { redis, postgres, tls } = servers;
    const partnersFile = join(dir, "partners.json");
    const secretOf = writeNewPartners(partnersFile, Object.fromEntries(partners.map((id) => [id, rateLimit])));
    await mkdir(join(dir, "log"));
    const ingestUrls: string[] = [];
    const logPathOf = (name: AppName) => join(dir, "log", `${name}.log`);
    const startApp = async (name: AppName) => {
      const port = await freePort();
      const isIngest = name.startsWith("ingest");
      if (isIngest) ingestUrls.push(`http://127.0.0.1:${port}`);
      return superviseApp({
        name,
        args: isIngest ? build.ingest : build.worker,
        environment: {
          REDIS_URL: redis.url,
          DATABASE_URL: tls.url,
          QUEUE_PREFIX: queuePrefix,
          PARTNERS_FILE: partnersFile,
          DUPLICATE_WINDOW_HOURS: String(duplicateWindowHours),
          PORT: String(port),
        },
        adminPort: await freePort(),
        logPath: logPathOf(name),
        onCrash,
      });
    };
    const apps = new Map<Name, SupervisedApp>();
    for (const name of appNames) apps.set(name, await startApp(name));
    return {
      redisUrl: redis.url,
      databaseUrl: tls.url,
      canSetClock: clock !== undefined,
      queuePrefix,
      duplicateWindowMs: duplicateWindowHours * 3_600_000,
      ingestUrls,
      secretOf: (partner) => secretOf[partner] ?? "",
      // Each name is a key, since each app was started.
      targets: {
        ...(Object.fromEntries(apps) as Record<Name, SupervisedApp>),
        redis: makeRedisTarget(redis, build, clock),
        postgres: { ...postgres, presentExpired: tls.presentExpired },
      },
      apps: [...apps.values()],
      readLogs: () => Promise.all(appNames.map((name) => readFile(logPathOf(name), "utf8"))),
      redis,
      postgres,
      async stop() {
        await Promise.all([...apps.values()].map((app) => app.stop()));
        await Promise.all([redis.stop(), postgres.stop()]);
      },
    };
  }
}

async function neverExpires(): Promise<never> {
  throw new Error("This run has no TLS, so no certificate can expire.");
}

/** The server's own configuration is what the service demands; a broken build has a broken Redis, after a restart, too. */
function makeRedisTarget(redis: DataServer, build: Build, clock: RedisClock | undefined): FaultTargets["redis"] {
  return {
    kill: redis.kill,
    ended: redis.ended,
    async restart() {
      await redis.restart();
      await removeSharedMemory(redis.pid);
      await applyRedisSettings(redis, build);
    },
    async setClock(aheadMs, signal) {
      if (clock === undefined) return;
      await clock.set(aheadMs);
      await untilClockShown(redis.url, aheadMs, signal);
    },
  };
}

async function applyRedisSettings({ url }: DataServer, { redisSettings }: Build): Promise<void> {
  if (Object.keys(redisSettings).length === 0) return;
  const redis = new Redis(url);
  try {
    for (const [name, value] of Object.entries(redisSettings)) await redis.config("SET", name, value);
  } finally {
    redis.disconnect();
  }
}
