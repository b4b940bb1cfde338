import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Redis } from "ioredis";
import { findRedis, redisMissing } from "./install.ts";
import { keepPassword } from "./keep-password.ts";
import { type LocalServer, startServer } from "./local-server.ts";

/**
 * Starts a Redis on 127.0.0.1 that is as durable as the service demands: an append-only file that is synced before each
 * answer, and no eviction.
 *
 * @param options.dir holds its data; created if need be
 * @param options.port default: the port that this directory used last, if it is free, else any free one
 * @param options.logDir where its log is; default: `dir`
 * @param options.maxmemory such as "1gb", at which it begins to refuse writes; default: none
 * @param options.environment variables for it, besides those of this process
 * @param options.host the loopback address on which it listens; default: 127.0.0.1
 * @param options.settings further lines of its configuration, or others than ours
 * @param options.keepsConfiguration a restart keeps what Redis or a Sentinel has changed
 */
export async function startRedis(options: {
  dir: string;
  port?: number;
  logDir?: string;
  maxmemory?: string;
  environment?: Readonly<Record<string, string>>;
  host?: string;
  settings?: Readonly<Record<string, string>>;
  keepsConfiguration?: boolean;
  signal?: AbortSignal;
}): Promise<LocalServer> {
  const { maxmemory = "0", host = "127.0.0.1", settings = {}, keepsConfiguration = false } = options;
  const dir = resolve(options.dir);
  const program = findRedis();
  if (!program) throw redisMissing();
  mkdirSync(dir, { recursive: true });
  chmodSync(dir, 0o700); // Redis writes guests' data into files that anyone may read.
  const password = keepPassword(join(dir, "password"));
  const configFile = join(dir, "redis.conf");
  // With the name of Redis' own user, because redis-cli takes an empty one literally.
  const url = (port: number) => `redis://default:${password}@${host}:${port}`;

  return startServer(
    {
      name: "Redis",
      dir,
      logPath: join(options.logDir ?? dir, "redis.log"),
      stopSignal: "SIGTERM",
      command: (port) => {
        if (!keepsConfiguration || !existsSync(configFile)) {
          const lines = [configuration({ dir, host, port, password, maxmemory }), ...settingLines(settings)];
          writeFileSync(configFile, lines.join("\n"), { mode: 0o600 });
        }
        return { file: program.file, args: [configFile], env: { ...process.env, ...options.environment } };
      },
      ping: (port) => pingRedis(url(port)),
      url,
      alternative: "use a Redis of your own: REDIS_URL=redis://… npm start",
    },
    options,
  );
}

/**
 * The password keeps a client of one Redis from working on another's data: a port may belong to another program
 * tomorrow.
 *
 * The queue is small and its file grows fast: with the default of 64 MB, Redis would rewrite it every few seconds under
 * load. hash-max-ziplist-value keeps the job of an event in one piece of memory, which takes a fifth less; Redis before
 * 7 knows the setting by this name only.
 */
function configuration(settings: {
  dir: string;
  host: string;
  port: number;
  password: string;
  maxmemory: string;
}): string {
  const { dir, host, port, password, maxmemory } = settings;
  return `# Written at each start.
bind ${host}
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

/** The last line of a setting counts. */
function settingLines(settings: Readonly<Record<string, string>>): string[] {
  return [...Object.entries(settings).map(([name, value]) => `${name} ${value}`), ""];
}

export async function pingRedis(url: string): Promise<void> {
  const timeouts = { connectTimeout: 2_000, commandTimeout: 2_000 };
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, ...timeouts });
  let reason: unknown;
  redis.on("error", (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    // The rejection only says "Connection is closed". The listener gets the reason.
    throw reason ?? error;
  } finally {
    redis.disconnect();
  }
}
