import { createHash, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../scripts/ports.ts";
import { type DataServer, startPostgres, startRedis } from "../scripts/services.ts";
import type { Build } from "./builds.ts";
import type { AppName, TargetName } from "./fault-plan.ts";
import type { FaultTarget } from "./inject-faults.ts";
import { type SupervisedApp, superviseApp } from "./supervise.ts";

/** Redis, PostgreSQL, two ingests and some workers, each of which may be hit. */
export interface System<Name extends AppName = AppName> {
  redisUrl: string;
  databaseUrl: string;
  queuePrefix: string;
  duplicateWindowMs: number;
  ingestUrls: string[];
  secretOf(partner: string): string;
  targets: Record<Name | Exclude<TargetName, AppName>, FaultTarget>;
  apps: SupervisedApp[];
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

/** Out of the way, where limits are not what it is about. */
const noRateLimit: RateLimit = { perSecond: 100_000, burst: 100_000 };

/**
 * Starts everything on ports of its own, with its data and logs in `dir`.
 *
 * @param options.rateLimit of each partner; none by default
 * @param options.onCrash told when an app ends by itself
 */
export async function startSystem<Name extends AppName>(options: {
  dir: string;
  build: Build;
  appNames: readonly Name[];
  partners: readonly string[];
  rateLimit?: RateLimit;
  signal: AbortSignal;
  onCrash: (what: string) => void;
}): Promise<System<Name>> {
  const { dir, build, appNames, partners, rateLimit = noRateLimit, signal, onCrash } = options;
  const redis = await startRedis({ dir: join(dir, "redis"), port: await freePort(), signal });
  let postgres: DataServer | undefined;
  try {
    await applyRedisSettings(redis, build);
    postgres = await startPostgres({ dir: join(dir, "postgres"), port: await freePort(), signal });
    return await startApps({ redis, postgres });
  } catch (error) {
    await Promise.all([redis.stop(), postgres?.stop()]);
    throw error;
  }

  async function startApps(servers: { redis: DataServer; postgres: DataServer }): Promise<System<Name>> {
    const { redis, postgres } = servers;
    const { partnersFile, secrets } = await writePartnersFile(dir, partners, rateLimit);
    await mkdir(join(dir, "log"));
    const ingestUrls: string[] = [];
    const startApp = async (name: AppName) => {
      const port = await freePort();
      const isIngest = name.startsWith("ingest");
      if (isIngest) ingestUrls.push(`http://127.0.0.1:${port}`);
      return superviseApp({
        name,
        args: isIngest ? build.ingest : build.worker,
        environment: {
          REDIS_URL: redis.url,
          DATABASE_URL: postgres.url,
          QUEUE_PREFIX: queuePrefix,
          PARTNERS_FILE: partnersFile,
          DUPLICATE_WINDOW_HOURS: String(duplicateWindowHours),
          PORT: String(port),
        },
        adminPort: await freePort(),
        logPath: join(dir, "log", `${name}.log`),
        onCrash,
      });
    };
    const apps = new Map<Name, SupervisedApp>();
    for (const name of appNames) apps.set(name, await startApp(name));
    return {
      redisUrl: redis.url,
      databaseUrl: postgres.url,
      queuePrefix,
      duplicateWindowMs: duplicateWindowHours * 3_600_000,
      ingestUrls,
      secretOf: (partner) => secrets.get(partner) ?? "",
      // Each name is a key, since each app was started.
      targets: {
        ...Object.fromEntries(apps),
        redis: keepingSettings(redis, build),
        postgres,
      } as System<Name>["targets"],
      apps: [...apps.values()],
      redis,
      postgres,
      async stop() {
        await Promise.all([...apps.values()].map((app) => app.stop()));
        await Promise.all([redis.stop(), postgres.stop()]);
      },
    };
  }
}

/** The server's own configuration is what the service demands; a broken build has a broken Redis, after a restart, too. */
function keepingSettings(redis: DataServer, build: Build): FaultTarget {
  return {
    kill: redis.kill,
    ended: redis.ended,
    async restart() {
      await redis.restart();
      await applyRedisSettings(redis, build);
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

async function writePartnersFile(
  dir: string,
  ids: readonly string[],
  rateLimit: RateLimit,
): Promise<{ partnersFile: string; secrets: Map<string, string> }> {
  const secrets = new Map(ids.map((id) => [id, randomBytes(32).toString("base64url")]));
  const partners = [...secrets].map(([id, secret]) => ({
    ...{ id, name: id, enabled: true, kinds: ["create", "update", "delete"] },
    rateLimit,
    secrets: [
      {
        id: "s1",
        sha256: createHash("sha256").update(secret).digest("hex"),
        createdAt: new Date().toISOString(),
        expiresAt: null,
      },
    ],
  }));
  const partnersFile = join(dir, "partners.json");
  await writeFile(partnersFile, JSON.stringify({ partners }), { mode: 0o600 });
  return { partnersFile, secrets };
}
