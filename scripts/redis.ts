import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Redis } from "ioredis";
import { type DataServer, startServer, untilAnswers } from "./data-server.ts";
import { hostOf } from "./given-url.ts";
import { findRedis, redisMissing } from "./install-redis.ts";
import { keepPassword } from "./keep-password.ts";
import { SetupProblem } from "./setup-problem.ts";

/**
 * Starts a Redis on 127.0.0.1 whose acknowledged writes are on disk, as the service demands of every Redis: an append
 * only file that is synced before each answer, and no eviction. `dir` holds its data, and is made if need be.
 *
 * @param options.logDir where its log is; default: `dir`
 * @param options.maxmemory such as "1gb", from which on it refuses writes; default: none
 * @param options.environment variables for it, beside those of this process
 */
export async function startRedis(options: {
  dir: string;
  /** Default: the port that this directory used last, if it is free, else any free one. */
  port?: number;
  logDir?: string;
  maxmemory?: string;
  environment?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}): Promise<DataServer> {
  const { maxmemory = "0" } = options;
  const dir = resolve(options.dir);
  const program = findRedis();
  if (!program) throw redisMissing();
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o700); // Redis writes guests' data into files that anyone may read.
  const password = keepPassword(join(dir, "password"));
  const configFile = join(dir, "redis.conf");
  const url = (port: number) => `redis://:${password}@127.0.0.1:${port}`;

  return startServer(
    {
      name: "Redis",
      dir,
      logPath: join(options.logDir ?? dir, "redis.log"),
      stopSignal: "SIGTERM",
      command: (port) => {
        writeFileSync(configFile, configuration({ dir, port, password, maxmemory }), { mode: 0o600 });
        return { file: program.file, args: [configFile], env: { ...process.env, ...options.environment } };
      },
      ping: (port) => ping(url(port)),
      url,
    },
    options,
  );
}

const GIVEN_REDIS_TIMEOUT_MS = 15_000;

/** For a Redis that somebody else runs. */
export async function untilRedisAnswers(url: string, signal?: AbortSignal): Promise<void> {
  const host = hostOf("REDIS_URL", url);
  const tooLate = (cause: unknown) =>
    new SetupProblem(
      `REDIS_URL is set, but the Redis at ${host} does not answer. ${cause}`,
      "Start it or correct REDIS_URL; or leave REDIS_URL out to have one started here.",
      { cause },
    );
  await untilAnswers(() => ping(url), { timeoutMs: GIVEN_REDIS_TIMEOUT_MS, tooLate, signal });
}

/**
 * The queue is small and its file grows fast: with the default of 64 MB, Redis would rewrite it every few seconds under
 * load. The hash-max setting keeps the job of an event in one piece of memory, which takes a fifth less; Redis before 7 knows
 * it by this name only.
 *
 * A password, since a port may be another program's tomorrow: a client of one Redis must not work on another's
 * data.
 */
function configuration(settings: { dir: string; port: number; password: string; maxmemory: string }): string {
  const { dir, port, password, maxmemory } = settings;
  return `# Written at each start.
bind 127.0.0.1
port ${port}
requirepass ${password}
dir ${JSON.stringify(dir)}
appendonly yes
appendfsync always
auto-aof-rewrite-min-size 256mb
save ""
maxmemory ${maxmemory}
maxmemory-policy noeviction
hash-max-ziplist-value 4096
daemonize no
`;
}

async function ping(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
  });
  let reason: unknown;
  redis.on("error", (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    // The rejection says no more than "Connection is closed"; why it was, is told to the listener.
    throw reason ?? error;
  } finally {
    redis.disconnect();
  }
}
