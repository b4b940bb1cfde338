import { spawnSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { runCommand } from "./run-command.ts";
import { SetupProblem } from "./setup-problem.ts";

export interface RedisProgram {
  file: string;
  /** Such as "Redis 7.0.15" or "Valkey 8.1.1". */
  version: string;
}

interface InstallOptions {
  say: (text: string) => void;
  signal?: AbortSignal;
}

/** BullMQ needs 6.2 or newer. */
const MIN_VERSION = [6, 2] as const;

/** The first of Redis and Valkey on the PATH that is new enough. */
export function findRedis(path: string | undefined = process.env["PATH"]): RedisProgram | undefined {
  for (const file of ["redis-server", "valkey-server"]) {
    const { stdout: text } = spawnSync(file, ["--version"], { encoding: "utf8", env: { ...process.env, PATH: path } });
    const [, product, version = ""] = /^(\w+) server v=(\S+)/.exec(text ?? "") ?? [];
    const [major = 0, minor = 0] = version.split(".").map(Number);
    const isNewEnough = major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1]);
    if (isNewEnough) return { file, version: `${product} ${version}` };
  }
  return undefined;
}

/**
 * The Redis of this machine. If there is none, apt-get installs it, provided that we are root or that sudo asks for no
 * password. Otherwise the error says how to install it.
 */
export async function findOrInstallRedis({ say, signal }: InstallOptions): Promise<RedisProgram> {
  const found = findRedis();
  if (found) return found;
  const asRoot = commandPrefixForRoot();
  if (!asRoot) throw redisMissing();

  say("No Redis on this machine: installing the package redis-server with apt-get.");
  try {
    await installPackage("redis-server", asRoot, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw new SetupProblem(`apt-get could not install redis-server.\n${error}`, redisInstructions, { cause: error });
  }
  switchOffService("redis-server", asRoot);
  const installed = findRedis();
  if (!installed) throw redisMissing();
  say(`Installed ${installed.version}. Its system service is switched off.`);
  return installed;
}

export function redisMissing(): SetupProblem {
  return new SetupProblem(
    `No redis-server or valkey-server ${MIN_VERSION.join(".")} or newer is on the PATH.`,
    redisInstructions,
  );
}

const redisInstructions =
  "Install Redis or Valkey and run the same command again:\n" +
  "  Debian and Ubuntu: sudo apt-get update && sudo apt-get install -y redis-server\n" +
  "  macOS: brew install redis\n" +
  "  Or use a Redis that runs elsewhere: REDIS_URL=redis://host:6379 npm start\n" +
  "  (it must have appendonly yes, appendfsync always and maxmemory-policy noeviction).";

/** The library that shows a program another time than the machine's, if this machine has it. */
export function findFaketime(): string | undefined {
  return globSync("/usr/lib/*-linux-gnu/faketime/libfaketime.so.1")[0];
}

/** Installs libfaketime if that is possible. Without it, chaos does not set the clock of its Redis. */
export async function installFaketime(options: InstallOptions): Promise<void> {
  if (findFaketime() === undefined) await installIfPossible("libfaketime", options);
}

/** PgBouncer, where Debian puts it: not on every user's PATH. */
export const pgBouncer = "/usr/sbin/pgbouncer";

/** Installs PgBouncer if that is possible. */
export async function installPgBouncer(options: InstallOptions): Promise<void> {
  if (!existsSync(pgBouncer)) await installIfPossible("pgbouncer", options);
}

/** The version of Prometheus and promtool, such as "2.42.0+ds", if both are on the PATH. */
export function findPrometheus(): string | undefined {
  const versions = ["prometheus", "promtool"].map((file) => {
    const { stdout: text } = spawnSync(file, ["--version"], { encoding: "utf8" });
    return /version (\S+)/.exec(text ?? "")?.[1];
  });
  return versions.includes(undefined) ? undefined : versions[0];
}

/** Installs Prometheus if that is possible. Without it, alerts and dashboards are not tested. */
export async function installPrometheus(options: InstallOptions): Promise<void> {
  if (findPrometheus() !== undefined) return;
  await installIfPossible("prometheus", options);
  switchOffService("prometheus", commandPrefixForRoot() ?? []);
}

/** Debian starts it, and it would take a port and memory for nothing. In a container there is none to stop. */
function switchOffService(name: string, asRoot: string[]): void {
  const [file = "", ...args] = [...asRoot, "systemctl", "disable", "--now", name];
  spawnSync(file, args, { stdio: "ignore" });
}

/** Chromium or Chrome, as Debian and GitHub's runners name it, if this machine has one. */
export function findChromium(): string | undefined {
  return ["/usr/bin/chromium", "/usr/bin/google-chrome"].find(existsSync);
}

/** Installs Chromium if that is possible. */
export async function installChromium(options: InstallOptions): Promise<void> {
  if (findChromium() === undefined) await installIfPossible("chromium", options);
}

async function installIfPossible(name: string, { say, signal }: InstallOptions): Promise<void> {
  const asRoot = commandPrefixForRoot();
  if (!asRoot) return;
  say(`No ${name} on this machine: installing it with apt-get.`);
  try {
    await installPackage(name, asRoot, signal);
  } catch (error) {
    signal?.throwIfAborted();
    say(`${name} could not be installed. ${error}`);
  }
}

/** What to put before an apt-get that runs as root. Undefined if there is no apt-get, or if sudo needs a password. */
function commandPrefixForRoot(): string[] | undefined {
  const prefixes = process.getuid?.() === 0 ? [[]] : [["sudo", "-n"]];
  return prefixes.find((prefix) => {
    const [file = "", ...args] = [...prefix, "apt-get", "--version"];
    return spawnSync(file, args, { stdio: "ignore" }).status === 0;
  });
}

/** The lists of packages of this machine are as new as the first install of this process. */
let listsAreNew = false;

async function installPackage(name: string, asRoot: string[], signal: AbortSignal | undefined): Promise<void> {
  const environment = [
    "DEBIAN_FRONTEND=noninteractive",
    "NEEDRESTART_MODE=a", // Ubuntu's needrestart would ask.
    `PATH=${process.env["PATH"]}:/usr/local/sbin:/usr/sbin:/sbin`, // dpkg needs these.
  ];
  const options = ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"];
  const aptGet = async (...command: string[]) => {
    const [file = "", ...args] = [...asRoot, "env", ...environment, "apt-get", ...options, ...command];
    await runCommand(file, args, { signal });
  };
  if (!listsAreNew) await aptGet("update");
  listsAreNew = true;
  await aptGet("install", "-y", "--no-install-recommends", name);
}
