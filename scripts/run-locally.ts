import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "./build.ts";
import {
  consolePasswordFile,
  dataDir,
  demoSecretFile,
  environmentFile,
  logDir,
  opsEnvironmentFile,
  root,
  starterFile,
} from "./clone.ts";
import { asGiven, asOwnRoles, type DatabaseAccess } from "./database-roles.ts";
import { ensureDemoPartner, type RunOps } from "./demo-partner.ts";
import { writeEnvironmentFile } from "./environment-file.ts";
import { findOrInstallRedis } from "./install.ts";
import { keepPassword } from "./keep-password.ts";
import { watchLogs } from "./limit-logs.ts";
import { type LocalServer, startServer, stopLeftover, untilAnswers } from "./local-server.ts";
import { type AppPorts, chooseAppPorts, DEFAULT_PORT } from "./ports.ts";
import { pingPostgres, startPostgres } from "./postgres.ts";
import { isRunning, readRecord, saveRecord } from "./process-record.ts";
import { attentionLine, say, showProblem, step } from "./progress.ts";
import { pingRedis, startRedis } from "./redis.ts";
import { runCommand } from "./run-command.ts";
import { SetupProblem } from "./setup-problem.ts";
import { stopRequested } from "./stop-signals.ts";
import { together } from "./together.ts";
import { tryDemoBooking, type Welcome, welcome } from "./welcome.ts";

/**
 * From the built code; or from source, where each app starts again when one of its files changes. The console does when it
 * is built again: `pnpm --filter @booking-events/console build`.
 */
export type CodeFrom = "dist" | "source";

/** Without a limit, ingest never sheds load because of Redis' memory. This one holds some 350,000 waiting events. */
const REDIS_MAXMEMORY = "1gb";
const GIVEN_SERVER_TIMEOUT_MS = 15_000;
const APPS = ["ingest", "worker", "lookup", "webhooks", "console"] as const;

/** A subscriber on this machine, such as a developer's own, has http and a private address. */
const WEBHOOKS_ALLOW_PRIVATE = "true";

/** What the stages of a start share. */
interface Run {
  from: CodeFrom;
  /** Aborted when we are told to stop. */
  stop: AbortSignal;
  /** Redis and PostgreSQL. */
  dataServers: LocalServer[];
  apps: LocalServer[];
}

/** Starts the service, prints how to use it, and stays until told to stop or until a part of it ends by itself. */
export async function runLocally(from: CodeFrom): Promise<never> {
  const stop = stopRequested({ force: () => killAll(run) });
  const run: Run = { from, stop, dataServers: [], apps: [] };
  let exitCode = 0;
  try {
    const startedAtMs = Date.now();
    claimClone();
    const result = await bringUp(run);
    say(welcome(result, Date.now() - startedAtMs));
    await untilSomethingEnds(run);
  } catch (error) {
    if (!stop.aborted) {
      exitCode = 1;
      showProblem(error);
    }
  }
  await takeDown(run);
  process.exit(exitCode);
}

/** Makes this process the one that runs this clone. */
function claimClone(): void {
  createFolders();
  const other = readRecord(starterFile);
  if (other && isRunning(other)) {
    throw new SetupProblem(
      `It already runs in this folder (process ${other.pid}).`,
      `Use that one, or stop it: Ctrl-C in its terminal, or kill -INT ${other.pid}. ` +
        "Another clone of the repository can run beside it.",
    );
  }
  saveRecord(starterFile, process.pid);
}

function createFolders(): void {
  try {
    mkdirSync(logDir, { recursive: true });
    chmodSync(logDir, 0o700); // PostgreSQL's messages may quote a value.
  } catch (cause) {
    throw new SetupProblem(
      `This user may not write to ${dataDir} (${(cause as NodeJS.ErrnoException).code}), where the data are kept.`,
      "Start it as the folder's owner, or in a copy of this folder.",
      { cause },
    );
  }
}

async function bringUp(run: Run): Promise<Welcome> {
  const { from, stop } = run;
  say("Starting. Ctrl-C stops everything.");
  watchLogs(logDir);
  // A start that was killed could not stop its apps, which may still listen.
  await Promise.all(APPS.map((name) => stopLeftover(appDir(name), "SIGTERM")));
  for (const variable of ["REDIS_URL", "DATABASE_URL"] as const) givenUrl(variable);
  // Now, to report a port that is taken before the build. They are chosen again when the apps start.
  await chooseAppPorts(process.env);

  const [redisUrl, database] = await together(stop, [
    (signal) => provideRedis(run, signal),
    (signal) => providePostgres(run, signal),
    (signal) => buildIfNeeded(run, signal),
  ]);
  const partnersFile = process.env["PARTNERS_FILE"] || "./partners.json";
  const { QUEUE_PREFIX, QUEUE_SHARDS, DATABASE_SCHEMA } = process.env;
  const common = { REDIS_URL: redisUrl, PARTNERS_FILE: partnersFile };
  const forUsers = {
    ...common,
    DATABASE_URL: database.ownerUrl,
    ...(QUEUE_PREFIX ? { QUEUE_PREFIX } : {}),
    ...(QUEUE_SHARDS ? { QUEUE_SHARDS } : {}),
    ...(DATABASE_SCHEMA ? { DATABASE_SCHEMA } : {}),
  };
  writeEnvironmentFile(environmentFile, forUsers);
  writeEnvironmentFile(opsEnvironmentFile, { DATABASE_URL: database.urls.ops });
  const environment = { ...process.env, ...common };

  const { command, environment: passwords } = database.migrate;
  const runAsOwner = opsRunner(from, { ...environment, ...passwords, DATABASE_URL: database.ownerUrl }, stop);
  await step("Migrations", () => runAsOwner(...command));
  const demo = await ensureDemoPartner({
    partnersFile: resolve(root, partnersFile),
    mayChange: !process.env["PARTNERS_FILE"],
    secretFile: demoSecretFile,
    runOps: opsRunner(from, { ...environment, DATABASE_URL: database.urls.ops }, stop),
  });
  const consolePassword = process.env["CONSOLE_PASSWORD"] || keepPassword(consolePasswordFile);
  const urls = await startApps(run, environment, { database, consolePassword });
  // The ports are known only now: another program may have taken a usual one.
  writeEnvironmentFile(environmentFile, { ...forUsers, ...urls, WEBHOOKS_ALLOW_PRIVATE });
  const { INGEST_URL: url, LOOKUP_URL: lookupUrl, CONSOLE_URL: consoleUrl } = urls;
  if ("secret" in demo) await tryDemoBooking(url, demo.secret, stop);
  return { url, lookupUrl, console: { url: consoleUrl, password: consolePassword }, demo, partnersFile };
}

async function provideRedis({ dataServers }: Run, signal: AbortSignal): Promise<string> {
  const given = givenUrl("REDIS_URL");
  if (given !== undefined) return untilGivenAnswers("REDIS_URL", given, pingRedis, signal);
  const { version } = await findOrInstallRedis({ say, signal });
  const start = () => startRedis({ dir: join(dataDir, "redis"), logDir, maxmemory: REDIS_MAXMEMORY, signal });
  const server = await step("Redis", start, ({ port }) => `${version} on 127.0.0.1:${port}`);
  dataServers.push(server);
  return server.url;
}

async function providePostgres({ dataServers }: Run, signal: AbortSignal): Promise<DatabaseAccess> {
  const given = givenUrl("DATABASE_URL");
  if (given !== undefined) return asGiven(await untilGivenAnswers("DATABASE_URL", given, pingPostgres, signal));
  const dir = join(dataDir, "postgres");
  const start = () => startPostgres({ dir, logDir, signal });
  const server = await step("PostgreSQL", start, ({ port, home }) => {
    const elsewhere = home === dir ? "" : `, data in ${home} (its user can't reach this folder)`;
    return `on 127.0.0.1:${port}${elsewhere}`;
  });
  dataServers.push(server);
  return asOwnRoles(server.url, dir);
}

const urlPatterns = {
  REDIS_URL: { pattern: /^rediss?:\/\//i, example: "redis://localhost:6379" },
  DATABASE_URL: { pattern: /^postgres(ql)?:\/\//i, example: "postgres://user:password@localhost:5432/booking_events" },
};

/**
 * Returns the URL of a server that the user runs; undefined: there is none.
 *
 * @throws SetupProblem if it is not a URL of that kind. The clients would try other servers
 */
function givenUrl(variable: keyof typeof urlPatterns): string | undefined {
  const given = process.env[variable];
  if (!given) return undefined;
  const { pattern, example } = urlPatterns[variable];
  if (pattern.test(given) && URL.canParse(given)) return given;
  throw new SetupProblem(
    `${variable} is not a URL such as ${example}.`,
    `Correct ${variable}; or leave it out to have a server started here.`,
  );
}

/** Waits for a server that the user runs, and returns its URL. Messages never show the URL, which has a password. */
async function untilGivenAnswers(
  variable: string,
  url: string,
  ping: (url: string) => Promise<void>,
  signal: AbortSignal,
): Promise<string> {
  const tooLate = (cause: unknown) =>
    new SetupProblem(
      `${variable} is set, but its server can't be used. ${cause}`,
      `Start it or correct ${variable}; or leave ${variable} out to have a server started here.`,
      { cause },
    );
  await untilAnswers(() => ping(url), { timeoutMs: GIVEN_SERVER_TIMEOUT_MS, tooLate, signal });
  return url;
}

/** Node runs all sources but the console's pages, whose JSX must be compiled. */
async function buildIfNeeded({ from }: Run, signal: AbortSignal): Promise<void> {
  await step(
    "Build",
    () => build(signal, from === "source" ? ["--filter=@booking-events/console", "--only"] : []),
    (summary) => summary,
  );
}

/** @returns the URLs of the apps, by the variable that has it */
async function startApps(
  { from, stop, apps }: Run,
  environment: NodeJS.ProcessEnv,
  access: Access,
): Promise<Record<"INGEST_URL" | "LOOKUP_URL" | "WEBHOOKS_URL" | "CONSOLE_URL", string>> {
  const ports = await chooseAppPorts(process.env);
  if (!process.env["PORT"] && ports.ingest !== DEFAULT_PORT)
    say(`Port ${DEFAULT_PORT} is in use by another program: ingest listens on ${ports.ingest}. PORT=… chooses one.`);
  const common = { ...environment, WEBHOOKS_ALLOW_PRIVATE };
  const starts = APPS.map((name) => async (signal: AbortSignal) => {
    const port = ports[`${name}Admin`];
    const env = { ...common, ...settingsOf(name, ports, access), ADMIN_PORT: String(port) };
    apps.push(await startApp({ name, from, env, port, signal }));
  });
  await step("Ingest, worker, lookup, webhooks and console", () => together(stop, starts));
  const urlOf = (port: number) => localUrl(ports.host, port);
  return {
    INGEST_URL: urlOf(ports.ingest),
    LOOKUP_URL: urlOf(ports.lookup),
    WEBHOOKS_URL: urlOf(ports.webhooks),
    CONSOLE_URL: `http://localhost:${ports.console}`,
  };
}

/** What each process gets besides what all get. */
interface Access {
  database: DatabaseAccess;
  consolePassword: string;
}

function settingsOf(
  name: (typeof APPS)[number],
  ports: AppPorts,
  { database, consolePassword }: Access,
): Record<string, string> {
  const listening = (host: string, port: number) => ({ HOST: host, PORT: String(port) });
  const urlOf = (port: number) => localUrl(ports.host, port);
  if (name === "ingest") return { ...listening(ports.host, ports.ingest), LOOKUP_URL: urlOf(ports.lookup) };
  const access = { DATABASE_URL: database.urls[name] };
  if (name === "worker") return access;
  if (name === "console")
    return { ...access, ...listening("127.0.0.1", ports.console), CONSOLE_PASSWORD: consolePassword };
  const more = name === "lookup" ? { DOCS_ORIGIN: urlOf(ports.ingest) } : {};
  return { ...access, ...more, ...listening(ports.host, ports[name]) };
}

function startApp(options: {
  name: string;
  from: CodeFrom;
  env: NodeJS.ProcessEnv;
  /** Where it says whether it is ready. */
  port: number;
  signal: AbortSignal;
}): Promise<LocalServer> {
  const { name, from, env, port, signal } = options;
  const watching = from === "source" ? ["--watch", "--watch-preserve-output"] : [];
  mkdirSync(appDir(name), { recursive: true });
  return startServer(
    {
      name,
      dir: appDir(name),
      logPath: join(logDir, `${name}.log`),
      stopSignal: "SIGTERM",
      command: () => ({ file: process.execPath, args: [...watching, ...entryPoint(from, name)], env }),
      ping: askWhetherReady,
      url: (adminPort) => `http://127.0.0.1:${adminPort}`,
      onLine: (line) => {
        const text = attentionLine(name, line);
        if (text !== undefined) say(text);
      },
    },
    { port, signal },
  );
}

async function askWhetherReady(adminPort: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`, { signal: AbortSignal.timeout(5_000) });
  if (response.ok) return;
  const answer = await response.text();
  // Only the user can change such a setting. Everything else may become better by itself.
  const settings = (readProblems(answer) ?? []).filter((problem) => problem.includes("Set: "));
  if (settings.length > 0)
    throw new SetupProblem(
      `Redis or PostgreSQL could lose events:\n  ${settings.join("\n  ")}`,
      "Change it as it says, and start again; or leave REDIS_URL and DATABASE_URL out to have servers started here.",
    );
  throw new Error(`It answers ${response.status} ${answer}`);
}

function readProblems(answer: string): string[] | undefined {
  try {
    return (JSON.parse(answer) as { problems?: string[] }).problems;
  } catch {
    return undefined;
  }
}

/** Resolves when we are told to stop; rejects when a part that should stay up has ended. */
async function untilSomethingEnds({ stop, dataServers, apps }: Run): Promise<void> {
  const told = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener("abort", () => resolve());
  });
  const ends = [...apps, ...dataServers].map(async (server) => {
    throw await server.ended();
  });
  await Promise.race([told, ...ends]);
}

/** First what uses the data, then what keeps it. */
async function takeDown({ dataServers, apps }: Run): Promise<void> {
  if (apps.length > 0 || dataServers.length > 0) {
    say("\nStopping. Ctrl-C again kills what does not end by itself.");
    await Promise.all(apps.map((app) => app.stop()));
    await Promise.all(dataServers.map((server) => server.stop()));
    say("Stopped. The data stays in .data, and the next start finds it.");
  }
  if (readRecord(starterFile)?.pid === process.pid) rmSync(starterFile, { force: true });
}

/** What was acknowledged is on disk already, so this loses nothing. The next start takes a little longer. */
function killAll({ dataServers, apps }: Run): never {
  for (const server of [...apps, ...dataServers]) server.kill("SIGKILL");
  process.exit(130);
}

function opsRunner(from: CodeFrom, environment: NodeJS.ProcessEnv, signal: AbortSignal): RunOps {
  return async (...args) => {
    try {
      const command = [...entryPoint(from, "ops"), ...args];
      return await runCommand(process.execPath, command, {
        cwd: root,
        env: { OPERATOR: "npm start", ...environment },
        signal,
      });
    } catch (cause) {
      signal.throwIfAborted();
      throw new SetupProblem(`ops failed. ${cause}`, "Fix what it names and start again.", { cause });
    }
  };
}

function entryPoint(from: CodeFrom, app: string): string[] {
  const fromSource = ["--disable-warning=ExperimentalWarning", "--conditions=@booking-events/source"];
  const options = from === "dist" ? [] : fromSource;
  const file = from === "dist" || app === "console" ? "dist/main.js" : "src/main.ts";
  return [...options, join(root, "apps", app, file)];
}

function localUrl(host: string, port: number): string {
  return `http://${hostForClients(host)}:${port}`;
}

function hostForClients(host: string): string {
  if (["0.0.0.0", "::", "127.0.0.1", "::1", "localhost"].includes(host)) return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}

const appDir = (name: string) => join(dataDir, name);
