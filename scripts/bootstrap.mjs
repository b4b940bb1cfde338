// The first step of every npm script: `node scripts/bootstrap.mjs <program> [argument …]`. It runs on whatever Node
// the host has, before anything is installed, so it uses nothing but built-ins and no syntax newer than Node 20. It
// makes sure that the locked packages are installed, Node 24 and pnpm among them, and runs the program with them.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const binaries = join(modules, ".bin");
/** Turbo runs pnpm, and looks for it on the PATH. A link, since npx keeps pnpm in npm's cache. */
const pnpmLink = join(binaries, "pnpm");
/** Written last, so its presence means that an install ended well; what it holds says which install. */
const stampFile = join(modules, ".booking-events-install.json");

const HOST_NODE_MIN = 20;
const PINNED_NODE_MAJOR = 24;

/** TypeScript runs as it is, and the workspace's packages are their sources. Node 24.0 to 24.2 still warn of that. */
const NODE_ARGUMENTS = ["--disable-warning=ExperimentalWarning", "--conditions=@booking-events/source"];

const [program = "", ...programArguments] = process.argv.slice(2);

/** The child that runs now. Signals go to it; what it answers is our exit code. */
let child;
/** @type {NodeJS.Signals | undefined} */
let stoppedBy;

async function main() {
  checkHost();
  forwardSignals();
  if (!isInstalled()) await install();
  const onNode = program === "node";
  const { code, signal } = await run(
    onNode ? nodeToUse() : program,
    onNode ? [...NODE_ARGUMENTS, ...programArguments] : programArguments,
    {
      cwd: root,
      // The channel carries no messages: it closes when this process is gone, however that happened.
      stdio: ["inherit", "inherit", "inherit", ...(onNode ? ["ipc"] : [])],
      env: { ...packageManagerEnvironment(), PATH: [binaries, process.env.PATH].join(delimiter) },
    },
  );
  if (signal) endBySignal(signal);
  else process.exitCode = code;
}

function checkHost() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < HOST_NODE_MIN) {
    throw new Problem(
      `Node ${process.versions.node} is too old: ${HOST_NODE_MIN} or newer is needed.`,
      "Install a newer Node (https://nodejs.org/en/download) and run the same command again.",
    );
  }
  if (process.platform === "win32") {
    throw new Problem(
      "This needs Linux or macOS: Redis does not run on Windows.",
      "Use WSL (`wsl --install`), clone the repository inside it, and run the same command there.",
    );
  }
}

/**
 * Is this very lockfile installed already? Nothing is started to find out, so a warm start pays for a few file reads
 * only.
 */
function isInstalled() {
  try {
    const stamp = JSON.parse(readFileSync(stampFile, "utf8"));
    // npm's cache, to which the link leads, may be cleaned at any time.
    return stamp.wanted === wantedState() && stamp.installed === installedState() && existsSync(pnpmLink);
  } catch {
    return false;
  }
}

async function install() {
  refuseMusl();
  const version = pinnedPnpmVersion();
  // Not on standard output, which belongs to the program: what `npm run -s ops` prints may be read by another.
  console.error(
    `Installing pnpm ${version} and the locked packages; the first time, that is a download of about 200 MB.`,
  );
  // Whatever ends this half-way leaves no stamp behind.
  rmSync(stampFile, { force: true });

  const pnpm = await findPnpm(version);
  const { code, signal } = await run(pnpm, installArguments(), {
    cwd: root,
    stdio: ["ignore", process.stderr, "inherit"],
    env: packageManagerEnvironment(),
  });
  if (signal) throw new Error(`pnpm was ended by ${signal}`);
  if (code !== 0) {
    throw new Problem(
      `pnpm could not install the packages (exit code ${code}); its message is above.`,
      "Check the network and, behind a proxy, HTTPS_PROXY; then run the same command again. " +
        "If package.json was edited, bring the lockfile up to date first: " +
        `npx -y pnpm@${version} install`,
    );
  }
  mkdirSync(binaries, { recursive: true });
  rmSync(pnpmLink, { force: true });
  symlinkSync(pnpm, pnpmLink);
  writeFileSync(stampFile, JSON.stringify({ wanted: wantedState(), installed: installedState() }));
}

function installArguments() {
  return [
    "install",
    "--frozen-lockfile",
    // With no terminal to ask on, pnpm would refuse to replace a node_modules that another tool made.
    "--config.confirmModulesPurge=false",
    // The age of every locked version is checked where a lockfile changes: in CI, and by whoever changes it. Here
    // it would only cost ten seconds of a first start.
    ...(process.env.CI ? [] : ["--trust-lockfile"]),
  ];
}

/** The path of the pinned pnpm, fetched by npx unless npm's cache has it. */
async function findPnpm(version) {
  const { code, signal, output } = await run("npx", ["-y", "-p", `pnpm@${version}`, "-c", "command -v pnpm"], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    // Errors only: npm would warn that this pnpm wants a newer Node than the host may have, on which it works too.
    env: { ...packageManagerEnvironment(), npm_config_update_notifier: "false", npm_config_loglevel: "error" },
  }).catch((error) => {
    if (error.code !== "ENOENT") throw error;
    throw new Problem("npx was not found. It comes with npm.", "Install npm and run the same command again.");
  });
  const path = output.trim();
  if (signal) throw new Error(`npx was ended by ${signal}`);
  if (code !== 0 || !existsSync(path)) {
    throw new Problem(
      `pnpm ${version} could not be fetched; npm's message is above.`,
      "Check that this machine reaches the npm registry (`npm ping`), then run the same command again.",
    );
  }
  return path;
}

function pinnedPnpmVersion() {
  const { packageManager = "" } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const version = /^pnpm@(\d+\.\d+\.\d+[^+]*)/.exec(packageManager)?.[1];
  if (!version) throw new Error(`package.json's packageManager names no exact pnpm version: "${packageManager}"`);
  return version;
}

/** A digest of everything that decides what an install puts in place. */
function wantedState() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}\n`);
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ...manifests()]) {
    hash
      .update(file)
      .update("\0")
      .update(readFileSync(join(root, file)))
      .update("\0");
  }
  return hash.digest("hex");
}

/** A digest of pnpm's own record in node_modules, which every other install, complete or not, changes. */
function installedState() {
  const missing = manifests().filter((file) => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, file), "utf8"));
    return (dependencies || devDependencies) && !existsSync(join(root, dirname(file), "node_modules"));
  });
  if (missing.length > 0) return "incomplete";
  return createHash("sha256")
    .update(readFileSync(join(modules, ".modules.yaml")))
    .digest("hex");
}

/** Every package.json of the workspace: at the root, and one or two folders down. */
function manifests() {
  const folders = ["", ...foldersIn("")];
  return [...folders, ...folders.slice(1).flatMap(foldersIn)]
    .map((folder) => join(folder, "package.json"))
    .filter((file) => existsSync(join(root, file)))
    .sort();
}

function foldersIn(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules")
    .map((entry) => join(folder, entry.name));
}

/** The pinned Node; on a platform that has none in the lockfile, the host's, if it is new enough. */
function nodeToUse() {
  const pinned = join(binaries, "node");
  if (existsSync(pinned)) return pinned;
  if (Number(process.versions.node.split(".")[0]) >= PINNED_NODE_MAJOR) return process.execPath;
  throw new Problem(
    `There is no pinned Node for ${process.platform} ${process.arch}, and this machine's is ${process.versions.node}.`,
    `Install Node ${PINNED_NODE_MAJOR} or newer and run the same command again.`,
  );
}

/** The pinned Node and the PostgreSQL that we bring up are linked against glibc. */
function refuseMusl() {
  if (process.platform !== "linux") return;
  process.report.excludeNetwork = true; // Else the report looks up the name of every open connection.
  if (process.report.getReport().header.glibcVersionRuntime) return;
  throw new Problem(
    "This Linux uses musl instead of glibc (Alpine does), for which there is no pinned Node and no PostgreSQL here.",
    "Use a glibc system, for example the container image node:24-bookworm-slim.",
  );
}

/**
 * The environment for npm, pnpm and everything after them. npm tells its children all of its own settings, and of
 * those only the way to the packages is meant for another package manager: a prefix or an `omit` is not.
 */
function packageManagerEnvironment() {
  const environment = {};
  for (const [name, value] of Object.entries(process.env)) {
    const npmSetting = /^npm_config_(.+)$/i.exec(name)?.[1]?.toLowerCase();
    if (/^npm_/i.test(name) && !settingsOfTheWayToThePackages.has(npmSetting) && !npmSetting?.includes(":")) continue;
    environment[name] = value;
    // pnpm reads npm's .npmrc but not npm's variables.
    if (npmSetting && value && npmSetting !== "cache" && npmSetting !== "userconfig") {
      environment[`pnpm_config_${npmSetting}`] ??= value;
    }
  }
  // "production" would leave out the packages that build and test.
  delete environment.NODE_ENV;
  return environment;
}

const settingsOfTheWayToThePackages = new Set([
  "registry",
  "proxy",
  "https_proxy",
  "noproxy",
  "cafile",
  "strict_ssl",
  "cache",
  "userconfig",
  "globalconfig",
]);

async function run(file, args, options) {
  if (stoppedBy) throw new Error(`stopped by ${stoppedBy}`);
  return new Promise((resolve, reject) => {
    child = spawn(file, args, options);
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, output }));
  });
}

/**
 * Whoever is told to stop tells its child, and ends when the child has. In a terminal Ctrl-C reaches every process
 * at once and then comes down from npm and from here too: the scripts count what arrives together as one.
 */
function forwardSignals() {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      stoppedBy ??= signal;
      child?.kill(signal);
    });
  }
  if (!process.env.npm_lifecycle_event) return;
  // npm killed outright forwards nothing.
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) child?.kill("SIGTERM");
  }, 500).unref();
}

/** With the code that a shell gives for it. */
function endBySignal(signal) {
  process.exitCode = 128 + (constants.signals[signal] ?? 0);
}

function fail(error) {
  if (error instanceof Problem) console.error(`\n✗ ${error.message}\n  ${error.advice}`);
  else console.error("\n✗ The set-up failed unexpectedly.\n", error);
  process.exitCode = 1;
}

/** What went wrong, and what to do about it. */
class Problem extends Error {
  constructor(message, advice) {
    super(message);
    this.advice = advice;
  }
}

// At the end, when everything above is defined.
try {
  await main();
} catch (error) {
  if (stoppedBy) endBySignal(stoppedBy);
  else fail(error);
}
