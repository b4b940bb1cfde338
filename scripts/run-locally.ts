import { chmodSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { choosePorts, hostOf } from "./app-ports.ts";
import { AppEnded, type AppProcess, startApp, untilReady } from "./app-process.ts";
import { build } from "./build.ts";
import { dataDir, demoSecretFile, environmentFile, logDir, root } from "./clone.ts";
import { CommandFailed, commandOutput } from "./command.ts";
import type { DataServer } from "./data-server.ts";
import { ensureDemoPartner, type RunOps } from "./demo-partner.ts";
import { writeEnvironmentFile } from "./environment-file.ts";
import { findOrInstallRedis } from "./install-redis.ts";
import { watchLogs } from "./limit-logs.ts";
import { startPostgres, untilPostgresAnswers } from "./postgres.ts";
import { say, showProblem, step } from "./progress.ts";
import { startRedis, untilRedisAnswers } from "./redis.ts";
import { claimClone, releaseClone } from "./run-record.ts";
import { SetupProblem } from "./setup-problem.ts";
import { stopRequested } from "./stop-signals.ts";
import { together } from "./together.ts";
import { tryDemoBooking, type Welcome, welcome } from "./welcome.ts";

/** From the built code; or from source, where each app starts again when one of its files changes. */
export type CodeFrom = "dist" | "source";

/** Without one, ingest never sheds load because of Redis' memory. Some 350,000 events may wait until it does. */
const REDIS_MAXMEMORY = "1gb";

/** What the stages of a start share. */
interface Run {
  from: CodeFrom;
  /** Aborted when we are told to stop. */
  stop: AbortSignal;
  servers: DataServer[];
  apps: AppProcess[];
}

/** Brings up the service, prints how to use it, and stays until told to stop or until a part of it ends by itself. */
export async function runLocally(from: CodeFrom): Promise<never> {
  const servers: DataServer[] = [];
  const apps: AppProcess[] = [];
  const stop = stopRequested({ force: () => killAll(run) });
  const run: Run = { from, stop, servers, apps };
  let exitCode = 0;
  try {
    const startedAtMs = Date.now();
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

async function bringUp(run: Run): Promise<Welcome> {
  const { from, stop } = run;
  say("Starting. Ctrl-C stops everything.");
  mkdirSync(logDir, { recursive: true });
  chmodSync(logDir, 0o700); // PostgreSQL logs the values of a row that it refuses.
  watchLogs(logDir);
  const leftBehind = await claimClone();
  if (leftBehind > 0) say(`Ended ${leftBehind} app(s) of an earlier start that was killed.`);
  // Only a look, so that a port which is taken is reported now and not after the build.
  await choosePorts(process.env);

  const [redisUrl, databaseUrl] = await together(stop, [
    (signal) => provideRedis(run, signal),
    (signal) => providePostgres(run, signal),
    (signal) => buildIfNeeded(run, signal),
  ]);
  const partnersFile = process.env["PARTNERS_FILE"] || "./partners.json";
  const forOps = { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl, PARTNERS_FILE: partnersFile };
  writeEnvironmentFile(environmentFile, { ...forOps, ...pick(process.env, "QUEUE_PREFIX") });
  const environment = { ...process.env, ...forOps, HOST: hostOf(process.env) };

  const runOps = opsRunner(from, environment, stop);
  await step("Migrations", () => runOps("migrate"));
  const demo = await ensureDemoPartner({
    partnersFile: resolve(root, partnersFile),
    mayChange: !process.env["PARTNERS_FILE"],
    secretFile: demoSecretFile,
    runOps,
  });
  const url = await startApps(run, environment);
  if ("secret" in demo) await tryDemoBooking(url, demo.secret, stop);
  return { url, demo, partnersFile };
}

async function provideRedis({ servers }: Run, signal: AbortSignal): Promise<string> {
  const given = process.env["REDIS_URL"];
  if (given) {
    await step("Redis of REDIS_URL", () => untilRedisAnswers(given, signal));
    return given;
  }
  const { version } = await findOrInstallRedis({ say, signal });
  const start = () => startRedis({ dir: join(dataDir, "redis"), logDir, maxmemory: REDIS_MAXMEMORY, signal });
  const server = await step("Redis", start, ({ port }) => `${version} on 127.0.0.1:${port}`);
  servers.push(server);
  return server.url;
}

async function providePostgres({ servers }: Run, signal: AbortSignal): Promise<string> {
  const given = process.env["DATABASE_URL"];
  if (given) {
    await step("PostgreSQL of DATABASE_URL", () => untilPostgresAnswers(given, signal));
    return given;
  }
  const dir = join(dataDir, "postgres");
  const start = () => startPostgres({ dir, logDir, signal });
  const server = await step("PostgreSQL", start, ({ port, home }) => {
    const elsewhere = home === dir ? "" : `, data in ${home} (its user can't reach this folder)`;
    return `on 127.0.0.1:${port}${elsewhere}`;
  });
  servers.push(server);
  return server.url;
}

async function buildIfNeeded({ from }: Run, signal: AbortSignal): Promise<void> {
  if (from === "source") return;
  const start = () => build(signal);
  await step("Build", start, (summary) => summary);
}

/** @returns the URL of ingest */
async function startApps({ from, stop, apps }: Run, environment: NodeJS.ProcessEnv): Promise<string> {
  const ports = await choosePorts(process.env);
  if (ports.instead) say(ports.instead);
  apps.push(
    startApp({
      name: "ingest",
      args: [...watching(from), ...entryPoint(from, "ingest")],
      environment: { ...environment, PORT: String(ports.ingest) },
      adminPort: ports.ingestAdmin,
      showLine: say,
    }),
    startApp({
      name: "worker",
      args: [...watching(from), ...entryPoint(from, "worker")],
      environment,
      adminPort: ports.workerAdmin,
      showLine: say,
    }),
  );
  await step("Ingest and worker", () =>
    together(
      stop,
      apps.map((app) => (signal: AbortSignal) => untilReady(app, signal)),
    ),
  );
  return ports.url;
}

/** Resolves when we are told to stop; rejects when a part that should stay up has ended. */
async function untilSomethingEnds({ stop, servers, apps }: Run): Promise<void> {
  const told = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener("abort", () => resolve());
  });
  await Promise.race([
    told,
    ...apps.map(async (app) => {
      throw new AppEnded(app, await app.ended);
    }),
    ...servers.map(async (server) => {
      await server.ended();
      throw new SetupProblem(
        `${server.name} ended by itself.`,
        `Its log may say why: ${server.logPath}. Then start again.`,
      );
    }),
  ]);
}

/** Those who use the data first, then those who keep it. */
async function takeDown({ servers, apps }: Run): Promise<void> {
  if (apps.length > 0 || servers.length > 0) {
    say("\nStopping. Ctrl-C once more kills what does not end by itself.");
    await Promise.all(apps.map((app) => app.stop()));
    await Promise.all(servers.map((server) => server.stop()));
    say("Stopped. The data stays in .data, and the next start finds it.");
  }
  releaseClone();
}

/** What was acknowledged is on disk already, so this loses nothing; the next start takes a little longer. */
function killAll({ servers, apps }: Run): never {
  for (const app of apps) app.kill();
  for (const server of servers) server.kill("SIGKILL");
  process.exit(130);
}

function opsRunner(from: CodeFrom, environment: NodeJS.ProcessEnv, signal: AbortSignal): RunOps {
  return async (...args) => {
    try {
      return await commandOutput(process.execPath, [...entryPoint(from, "ops"), ...args], {
        cwd: root,
        env: environment,
        signal,
      });
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      throw new SetupProblem(
        `\`ops ${args.join(" ")}\` failed:\n\n${error.output.trim()}`,
        "Fix what it names and start again.",
        { cause: error },
      );
    }
  };
}

function entryPoint(from: CodeFrom, app: string): string[] {
  return from === "dist"
    ? [`apps/${app}/dist/main.js`]
    : ["--disable-warning=ExperimentalWarning", "--conditions=@booking-events/source", `apps/${app}/src/main.ts`];
}

function watching(from: CodeFrom): string[] {
  return from === "dist" ? [] : ["--watch", "--watch-preserve-output"];
}

function pick(environment: NodeJS.ProcessEnv, name: string): Record<string, string> {
  const value = environment[name];
  return value ? { [name]: value } : {};
}
