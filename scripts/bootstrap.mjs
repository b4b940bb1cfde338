// The first step of every npm script: `node scripts/bootstrap.mjs <program> [argument …]`. It runs on the host's Node
// before anything is installed, so it uses only built-in modules and no syntax newer than Node 20. It installs the
// locked packages, which include Node 24 and pnpm, and runs the program with them.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  existsSync,
  constants as fileConstants,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const binaries = join(root, "node_modules", ".bin");
/** Turbo looks for pnpm on the PATH. A link, because npx keeps pnpm in npm's cache. */
const pnpmLink = join(binaries, "pnpm");
/** Written last: its presence means that an install has succeeded. It holds a digest of what was installed. */
const stampFile = join(root, "node_modules", ".booking-events-install");

const HOST_NODE_MIN = 20;
const PINNED_NODE_MAJOR = 24;
const hostNodeMajor = Number(process.versions.node.split(".")[0]);

/** TypeScript runs as it is, and the workspace's packages are their sources. Node 24.0 to 24.2 still warn of that. */
const NODE_ARGUMENTS = ["--disable-warning=ExperimentalWarning", "--conditions=@booking-events/source"];

/** The child that is running. It gets our signals, and its exit code becomes ours. */
let child;
/** @type {NodeJS.Signals | undefined} */
let stoppedBy;

async function main([program = "", ...programArguments]) {
  checkHost();
  forwardSignals();
  if (!isInstalled()) await install();
  const isNode = program === "node";
  const { code, signal } = await run(
    isNode ? nodeToUse() : program,
    isNode ? [...NODE_ARGUMENTS, ...programArguments] : programArguments,
    {
      // The channel carries no messages: it closes when this process ends, for whatever reason.
      stdio: ["inherit", "inherit", "inherit", ...(isNode ? ["ipc"] : [])],
      env: { ...packageManagerEnvironment(), PATH: [binaries, process.env.PATH].join(delimiter) },
    },
  );
  if (signal) endBySignal(signal);
  else process.exitCode = code;
}

function checkHost() {
  if (hostNodeMajor < HOST_NODE_MIN) {
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

/** Reads files only: a start that has nothing to install must not wait for a package manager. */
function isInstalled() {
  // Someone may have cleaned npm's cache, where the link leads.
  return existsSync(stampFile) && readFileSync(stampFile, "utf8") === wantedState() && existsSync(pnpmLink);
}

async function install() {
  refuseMusl();
  refuseReadOnly();
  const version = pinnedPnpmVersion();
  // Not on standard output, which belongs to the program: another program may read what `npm run -s ops` prints.
  console.error(
    `Installing pnpm ${version} and the locked packages; the first time, that is a download of about 200 MB.`,
  );
  rmSync(stampFile, { force: true });
  const pnpm = await findPnpm(version);
  const { code, signal } = await run(pnpm, installArguments(), {
    stdio: ["ignore", process.stderr, "inherit"],
    env: packageManagerEnvironment(),
  });
  if (signal) throw new Error(`pnpm was ended by ${signal}`);
  if (code !== 0) {
    throw new Problem(
      `pnpm could not install the packages (exit code ${code}); its message is above.`,
      "Check the network and, behind a proxy, HTTPS_PROXY; then run the same command again. " +
        `If you edited package.json, update the lockfile first: npx -y pnpm@${version} install`,
    );
  }
  mkdirSync(binaries, { recursive: true });
  rmSync(pnpmLink, { force: true });
  symlinkSync(pnpm, pnpmLink);
  writeFileSync(stampFile, wantedState());
}

function installArguments() {
  return [
    "install",
    "--frozen-lockfile",
    // Without a terminal to ask on, pnpm would refuse to replace a node_modules that another tool created.
    "--config.confirmModulesPurge=false",
    // CI checks the age of every locked version. Here that would only add ten seconds to a first start.
    ...(process.env.CI ? [] : ["--trust-lockfile"]),
  ];
}

/** The path of the pinned pnpm. npx fetches it unless npm's cache has it. */
async function findPnpm(version) {
  const { code, signal, output } = await run("npx", ["-y", "-p", `pnpm@${version}`, "-c", "command -v pnpm"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...packageManagerEnvironment(),
      npm_config_update_notifier: "false",
      // npm would warn that pnpm wants a newer Node than the host may have. It works with that one, too.
      npm_config_loglevel: "error",
      // The version is exact, so a cached answer of the registry is right. Without a network, npx would wait a minute.
      npm_config_prefer_offline: "true",
    },
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
  if (!version) throw new Error(`packageManager in package.json is not an exact version of pnpm: "${packageManager}"`);
  return version;
}

/** A digest of what decides what is installed. A change of any package's dependencies changes the lockfile. */
function wantedState() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
  for (const file of ["package.json", "pnpm-lock.yaml", "pnpm-workspace.yaml"]) {
    hash.update(readFileSync(join(root, file)));
  }
  return hash.digest("hex");
}

/** The pinned Node; or the host's, on a platform for which the lockfile has none. */
function nodeToUse() {
  const pinned = join(binaries, "node");
  if (existsSync(pinned)) return pinned;
  if (hostNodeMajor >= PINNED_NODE_MAJOR) return process.execPath;
  throw new Problem(
    `There is no pinned Node for ${process.platform} ${process.arch}, and this machine's is ${process.versions.node}.`,
    `Install Node ${PINNED_NODE_MAJOR} or newer and run the same command again.`,
  );
}

/** The pinned Node and the embedded PostgreSQL are linked against glibc. */
function refuseMusl() {
  if (process.platform !== "linux") return;
  process.report.excludeNetwork = true; // Otherwise the report looks up the name of every open connection.
  if (process.report.getReport().header.glibcVersionRuntime) return;
  throw new Problem(
    "This Linux uses musl instead of glibc (Alpine does), for which there is no pinned Node and no PostgreSQL here.",
    "Use a glibc system, for example the container image node:24-bookworm-slim.",
  );
}

function refuseReadOnly() {
  try {
    for (const folder of [root, dirname(binaries)]) if (existsSync(folder)) accessSync(folder, fileConstants.W_OK);
  } catch (error) {
    throw new Problem(
      `This user may not write to ${root} (${error.code}), where the packages are installed.`,
      "Run the same command as the folder's owner, or in a copy of the folder.",
    );
  }
}

/** npm's settings about where packages come from. The others, such as a prefix or an `omit`, are not meant for pnpm. */
const SHARED_SETTING =
  /^npm_config_(registry|.*:.*|(https_|no)?proxy|cafile|strict_ssl|cache|userconfig|globalconfig)$/i;

/** npm passes all of its settings to its children as variables. */
function packageManagerEnvironment() {
  const variables = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) || SHARED_SETTING.test(name));
  const environment = Object.fromEntries(variables);
  for (const [name, value] of variables) {
    // pnpm reads npm's .npmrc but not npm's variables.
    const setting = SHARED_SETTING.exec(name)?.[1].toLowerCase();
    if (setting && value && setting !== "cache" && setting !== "userconfig") {
      environment[`pnpm_config_${setting}`] ??= value;
    }
  }
  // "production" would leave out the packages that build and test.
  delete environment.NODE_ENV;
  return environment;
}

async function run(file, args, options) {
  if (stoppedBy) throw new Error(`stopped by ${stoppedBy}`);
  return new Promise((resolve, reject) => {
    child = spawn(file, args, { cwd: root, ...options });
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, output }));
  });
}

/**
 * Passes signals to the child, and ends when the child has. A Ctrl-C in a terminal reaches every process directly and
 * then again through npm and us: the scripts count signals that arrive together as one.
 */
function forwardSignals() {
  const stop = (signal) => {
    stoppedBy ??= signal;
    child?.kill(signal);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);
  if (!process.env.npm_lifecycle_event) return;
  // An npm that is killed forwards nothing.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    // A later signal would be a second, deliberate one.
    if (!stoppedBy) stop("SIGTERM");
  }, 500).unref();
}

/** With the exit code that a shell would report. */
function endBySignal(signal) {
  process.exitCode = 128 + (constants.signals[signal] ?? 0);
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
  await main(process.argv.slice(2));
} catch (error) {
  if (stoppedBy) {
    endBySignal(stoppedBy);
  } else {
    if (error instanceof Problem) console.error(`\n✗ ${error.message}\n  ${error.advice}`);
    else console.error("\n✗ The set-up failed unexpectedly.\n", error);
    process.exitCode = 1;
  }
}
