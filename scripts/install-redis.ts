import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { commandPrefixForRoot, installPackage, isExecutable, onPath } from "./apt-get.ts";
import { commandOutput } from "./command.ts";
import { SetupProblem } from "./setup-problem.ts";

export interface RedisProgram {
  file: string;
  /** Such as "Redis 7.0.15" or "Valkey 8.1.1". */
  version: string;
}

/** BullMQ runs on 6.2 and newer. */
const MIN_VERSION = [6, 2] as const;

/** A Redis or Valkey server on the PATH that is new enough. */
export function findRedis(path: string = process.env["PATH"] ?? ""): RedisProgram | undefined {
  for (const name of ["redis-server", "valkey-server"]) {
    for (const folder of path.split(delimiter)) {
      const file = join(folder, name);
      const version = folder !== "" && isExecutable(file) ? readVersion(file) : undefined;
      if (version !== undefined) return { file, version };
    }
  }
  return undefined;
}

/**
 * The Redis of this machine. Where there is none, it is installed if that needs nobody's help: by apt-get, as root or
 * by a sudo that asks for no password. Everywhere else the error says how to install it.
 */
export async function findOrInstallRedis({
  say,
  signal,
}: {
  say: (text: string) => void;
  signal?: AbortSignal;
}): Promise<RedisProgram> {
  const found = findRedis();
  if (found) return found;
  const asRoot = commandPrefixForRoot();
  if (!onPath("apt-get") || !asRoot) throw redisMissing();

  const log = await installWithApt(asRoot, say, signal);
  const installed = findRedis();
  if (!installed) {
    throw new SetupProblem(
      `apt-get installed redis-server, but no Redis ${MIN_VERSION.join(".")} or newer is on the PATH.\n${log}`,
      redisInstructions,
    );
  }
  say(`Installed ${installed.version} (apt-get install redis-server); its system service is left switched off.`);
  return installed;
}

export function redisMissing(): SetupProblem {
  return new SetupProblem(
    `No redis-server or valkey-server ${MIN_VERSION.join(".")} or newer is on the PATH.`,
    redisInstructions,
  );
}

/** BullMQ needs one, and there is none in the registry. */
const redisInstructions =
  "Install Redis or Valkey, so that redis-server is on the PATH, and run the same command again:\n" +
  "  Debian and Ubuntu: sudo apt-get update && sudo apt-get install -y redis-server\n" +
  "  macOS: brew install redis\n" +
  "  Or use a Redis that runs elsewhere: REDIS_URL=redis://host:6379 npm start\n" +
  "  (it must have appendonly yes, appendfsync always and maxmemory-policy noeviction).";

async function installWithApt(
  asRoot: readonly string[],
  say: (text: string) => void,
  signal: AbortSignal | undefined,
): Promise<string> {
  const how = asRoot.length === 0 ? "as root" : "by sudo";
  say(`No Redis on this machine: installing the package redis-server with apt-get, ${how}.`);
  try {
    const log = await installPackage("redis-server", asRoot, signal);
    await switchServiceOff(asRoot, signal);
    return log;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new SetupProblem(`apt-get could not install redis-server.\n${error}`, redisInstructions, { cause: error });
  }
}

/** Debian starts it with the installation. It would take port 6379 and memory for nothing: we run one of our own. */
async function switchServiceOff(asRoot: readonly string[], signal: AbortSignal | undefined): Promise<void> {
  if (!onPath("systemctl")) return;
  const [file = "systemctl", ...args] = [...asRoot, "systemctl", "disable", "--now", "redis-server"];
  // Where systemd does not run, as in a container, there is nothing to stop and this says so.
  await commandOutput(file, args, { signal }).catch(() => {});
}

function readVersion(file: string): string | undefined {
  const { stdout: text } = spawnSync(file, ["--version"], { encoding: "utf8" });
  const [, product = "Redis", version = ""] = /^(\w+) server v=(\S+)/.exec(text ?? "") ?? [];
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isNewEnough = major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1]);
  return isNewEnough ? `${product} ${version}` : undefined;
}
