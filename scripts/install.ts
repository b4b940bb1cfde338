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

interface ToolOptions extends InstallOptions {
  /** Default: as the environment says. */
  isCi?: boolean;
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

/** What only some tests need. Where it is missing and can't be installed, they leave something out. */
const tools = {
  /** The library that shows a program another time than the machine's: for the clock of Redis in chaos. */
  faketime: {
    package: "libfaketime",
    find: () => globSync("/usr/lib/*-linux-gnu/faketime/libfaketime.so.1")[0],
  },
  /** Where Debian puts it: not on every user's PATH. */
  pgbouncer: { package: "pgbouncer", find: () => firstOf("/usr/sbin/pgbouncer") },
  caddy: { package: "caddy", find: () => firstOf("/usr/bin/caddy") },
  /** With promtool: both come in one package. */
  prometheus: {
    package: "prometheus",
    find: () => (["prometheus", "promtool"].every(runs) ? "prometheus" : undefined),
  },
  /** Or Chrome, as GitHub's runners name it. */
  chromium: { package: "chromium", find: () => firstOf("/usr/bin/chromium", "/usr/bin/google-chrome") },
} as const satisfies Record<string, { package: string; find: () => string | undefined }>;

export type Tool = keyof typeof tools;

/** @returns the path or name of its file, if this machine has it */
function findTool(tool: Tool): string | undefined {
  return tools[tool].find();
}

/**
 * Installs the tool if it is missing and apt-get can install it.
 *
 * @returns the path or name of its file; undefined: this machine can't have it
 * @throws if CI can't have it, where nobody would notice that tests are skipped
 */
export async function findOrInstallTool(
  tool: Tool,
  { say, signal, isCi = "CI" in process.env }: ToolOptions,
): Promise<string | undefined> {
  const { package: name } = tools[tool];
  const asRoot = commandPrefixForRoot();
  if (findTool(tool) === undefined && asRoot) {
    say(`No ${name} on this machine: installing it with apt-get.`);
    try {
      await installPackage(name, asRoot, signal);
      if (tool === "prometheus" || tool === "caddy") switchOffService(name, asRoot);
    } catch (error) {
      signal?.throwIfAborted();
      say(`${name} could not be installed. ${error}`);
    }
  }
  const file = findTool(tool);
  if (file === undefined && isCi)
    throw new Error(`This machine has no ${name}, and in CI no test may be skipped for that.`);
  return file;
}

function firstOf(...files: string[]): string | undefined {
  return files.find((file) => existsSync(file));
}

function runs(file: string): boolean {
  return spawnSync(file, ["--version"], { stdio: "ignore" }).status === 0;
}

/** Debian starts it, and it would take a port and memory for nothing. In a container there is none to stop. */
function switchOffService(name: string, asRoot: string[]): void {
  const [file = "", ...args] = [...asRoot, "systemctl", "disable", "--now", name];
  spawnSync(file, args, { stdio: "ignore" });
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
