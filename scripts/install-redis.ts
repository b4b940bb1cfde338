import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
      redisInstructions(thisMachine()),
    );
  }
  say(`Installed ${installed.version} (apt-get install redis-server); its system service is left switched off.`);
  return installed;
}

export function redisMissing(): SetupProblem {
  return new SetupProblem(
    `No redis-server or valkey-server ${MIN_VERSION.join(".")} or newer is on the PATH.`,
    redisInstructions(thisMachine()),
  );
}

export interface Machine {
  platform: NodeJS.Platform;
  /** ID and ID_LIKE of /etc/os-release, such as ["ubuntu", "debian"]. */
  distribution: readonly string[];
}

/** What to type to get a Redis, for the platforms that we know, and the way round it for all. */
export function redisInstructions({ platform, distribution }: Machine): string {
  const is = (...names: string[]) => distribution.some((name) => names.includes(name));
  const install = () => {
    if (platform === "darwin") return "Install it: brew install redis";
    if (platform === "win32") return "Redis does not run on Windows: use WSL (wsl --install) and start from there";
    if (is("debian", "ubuntu")) return "Install it: sudo apt-get update && sudo apt-get install -y redis-server";
    // Fedora has had Valkey in Redis's place since 41, and RHEL since 10.
    if (is("fedora", "rhel", "centos")) return "Install it: sudo dnf install -y valkey (or: sudo dnf install -y redis)";
    if (is("alpine")) return "Install it: apk add redis";
    if (is("arch")) return "Install it: sudo pacman -S --needed valkey";
    if (is("suse", "opensuse")) return "Install it: sudo zypper install -y redis";
    return "Install Redis or Valkey with this system's package manager, so that redis-server is on the PATH";
  };
  return (
    `${install()}.\n` +
    "  Then run the same command again. Or use a Redis that runs elsewhere: REDIS_URL=redis://host:6379 npm start\n" +
    "  (it must have appendonly yes, appendfsync always and maxmemory-policy noeviction)."
  );
}

async function installWithApt(
  asRoot: readonly string[],
  say: (text: string) => void,
  signal: AbortSignal | undefined,
): Promise<string> {
  const how = asRoot.length === 0 ? "as root" : "by sudo";
  say(`No Redis on this machine: installing the package redis-server with apt-get, ${how}.`);
  const allowServices = forbidServiceStarts(asRoot);
  try {
    const log = await installPackage("redis-server", asRoot, signal);
    await switchServiceOff(asRoot, signal);
    return log;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new SetupProblem(`apt-get could not install redis-server.\n${error}`, redisInstructions(thisMachine()), {
      cause: error,
    });
  } finally {
    allowServices();
  }
}

/**
 * Debian starts a service as it installs it, unless this file says no. The system's own Redis would take port 6379
 * and memory for nothing, since we run one of our own. Container images have the file already.
 */
function forbidServiceStarts(asRoot: readonly string[]): () => void {
  const file = "/usr/sbin/policy-rc.d";
  // With sudo the service is stopped afterwards instead: a root-owned file is not ours to juggle with.
  if (asRoot.length > 0 || existsSync(file)) return () => {};
  writeFileSync(file, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  return () => rmSync(file, { force: true });
}

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

function thisMachine(): Machine {
  let release = "";
  try {
    release = readFileSync("/etc/os-release", "utf8");
  } catch {
    // Not a Linux, or one that does not say.
  }
  const distribution = [...release.matchAll(/^(?:ID|ID_LIKE)="?([^"\n]*)"?$/gm)].flatMap(([, ids = ""]) =>
    ids.split(" "),
  );
  return { platform: process.platform, distribution };
}
