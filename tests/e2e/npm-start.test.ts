import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdtemp, readFile, rm, stat, symlink } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv, promisify } from "node:util";
import { freePort, waitFor } from "@booking-events/harness";
import { compileCache, fromSource } from "@booking-events/harness/app-process";
import { createPool } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const leftOut = new Set([".git", ".data", ".turbo", "dist", "partners.json"]);
/** Long enough to build on a busy machine. */
const startTimeoutMs = 240_000;

/** The machine's own programs, without those of this run. */
const hostPath = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.includes("node_modules"));
const hostEnvironment = {
  PATH: hostPath.join(delimiter),
  HOME: process.env["HOME"],
  ...compileCache,
  // What has been built here need not be compiled again.
  TURBO_CACHE_DIR: join(root, ".turbo/cache"),
  // Otherwise pnpm would see that these packages were installed for another folder, and install them for this one.
  pnpm_config_verify_deps_before_run: "false",
};

/**
 * A copy of the repository, not built. It shares the installed packages with ours: each run in CI begins with an install,
 * and `npm-alone.nightly.test.ts` installs a copy.
 */
let clone: string;
const packages = join(root, "node_modules");
/** An install writes it. */
const readInstalled = async () => (await stat(join(packages, ".modules.yaml"))).mtimeMs;
const started: ChildProcess[] = [];

beforeAll(async () => {
  clone = await mkdtemp(join(tmpdir(), "booking-events-clone-"));
  // PostgreSQL's own user must reach its data.
  await chmod(clone, 0o755);
  // The other node_modules are links, to these packages and within the copy.
  await cp(root, clone, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => path !== packages && !leftOut.has(basename(path)),
  });
  await symlink(packages, join(clone, "node_modules"));
});

afterAll(async () => {
  for (const { pid } of started) if (pid !== undefined && isAlive(pid)) process.kill(pid, "SIGKILL");
  await rm(clone, { recursive: true, force: true });
});

test("one command in a copy that is not built, and the printed commands, make a booking; a second start finds it", {
  timeout: 2 * startTimeoutMs,
}, async () => {
  const installedAt = await readInstalled();
  const first = await startHere();
  const [curl, show] = ["curl", "npm run"].map((start) => first.printedCommand(start)) as [string, string];

  const answer = JSON.parse(await paste(curl)) as { success: boolean; eventId: string };
  expect(answer).toEqual({ success: true, eventId: expect.any(String) });
  const made = [{ partner: "demo", reference: "DEMO-1", state: "active" }];
  await waitFor(async () => expect(await readBookings()).toEqual(made));
  const shown = await paste(show);
  expect(shown).toContain("Booking DEMO-1 of demo: active");
  expect(shown).toContain(answer.eventId);
  const ask = /curl .*\/receipt\/\S+/.exec(first.output())?.[0] ?? "";
  expect(JSON.parse(await paste(ask.replace("EVENT_ID", answer.eventId)))).toEqual({
    eventId: answer.eventId,
    status: "applied",
    outcome: "created",
    decidedBy: answer.eventId,
  });
  const [, consoleUrl = "", password = ""] = /^ {2}Console {2}(\S+)\n {2}Password (\S+)$/m.exec(first.output()) ?? [];
  expect(await logIn(consoleUrl, "wrong")).toMatchObject({ status: 403 });
  const cookie = (await logIn(consoleUrl, password)).headers.get("set-cookie")?.split(";")[0] ?? "";
  const overview = await fetch(consoleUrl, { headers: { Cookie: cookie } });
  expect([overview.status, overview.redirected]).toEqual([200, false]);
  expect(await readUsers()).toEqual([
    { program: "booking-events-console", user: "booking_events_console", isSuperuser: false },
    { program: "booking-events-deliver", user: "booking_events_webhooks", isSuperuser: false },
    { program: "booking-events-lookup", user: "booking_events_lookup", isSuperuser: false },
    { program: "booking-events-webhooks", user: "booking_events_webhooks", isSuperuser: false },
    { program: "booking-events-worker", user: "booking_events_worker", isSuperuser: false },
  ]);
  const forOps = parseEnv(await readFile(join(clone, ".data/ops.env"), "utf8"));
  expect(new URL(forOps["DATABASE_URL"] ?? "").username).toBe("booking_events_ops");

  // All of 127.0.0.0/8 is this machine. A server on all addresses also answers there; one on 127.0.0.1 does not.
  for (const port of [
    first.port,
    Number(new URL(consoleUrl).port),
    ...[0, 1, 2, 3, 4].map((next) => first.adminPort + next),
  ]) {
    const reached = connect(port, "127.0.0.1");
    await expect(once(reached, "connect")).resolves.toBeDefined();
    reached.destroy(); // Otherwise a shutdown would wait for a request.
    await expect(once(connect(port, "127.0.0.2"), "connect")).rejects.toThrow(/ECONNREFUSED|EADDRNOTAVAIL|ETIMEDOUT/);
  }
  const environment = await readEnvironment();
  expect(environment["INGEST_URL"]).toBe(`http://localhost:${first.port}`);
  expect(environment["CONSOLE_URL"]).toBe(consoleUrl);
  for (const name of ["LOOKUP_URL", "WEBHOOKS_URL"]) expect((await fetch(environment[name] ?? "")).status).toBe(404);
  // Without a name, redis-cli would send an empty one, which Redis refuses.
  expect(environment["REDIS_URL"]).toMatch(/^redis:\/\/default:\w+@/);
  const redis = new Redis(environment["REDIS_URL"] ?? "");
  expect(await redis.config("GET", "maxmemory")).toEqual(["maxmemory", String(1_024 ** 3)]);
  redis.disconnect();

  expect(await first.stop("SIGINT")).toBe(0);
  expect(first.output()).toContain("Stopped.");

  const second = await startHere();
  expect(second.output()).toContain("Build: nothing to do");
  expect(await paste(show)).toContain(answer.eventId);
  // The secret that was handed out stays valid.
  expect(second.printedCommand("curl").replace(/:\d+/, "")).toBe(curl.replace(/:\d+/, ""));
  expect(second.output()).toContain(`Password ${password}\n`);

  // What `npm start` runs. For a refusal, npm itself would take as long.
  const beside = run(process.execPath, fromSource("scripts/start.ts"), hostEnvironment);
  expect(await beside.exitCode).toBe(1);
  expect(beside.output()).toMatch(/already runs/i);

  expect(await second.stop("SIGTERM")).toBe(0);

  for (const name of ["ingest", "worker", "lookup", "webhooks", "console"]) {
    const log = await readFile(join(clone, `.data/log/${name}.log`), "utf8");
    if (!["webhooks", "console"].includes(name)) expect(log).toContain(answer.eventId);
    expect(log).not.toContain(password);
    expect(log.match(/"msg":"stopped"/g)).toHaveLength(2);
  }
  expect(await readInstalled()).toBe(installedAt);
  expect(await readFile(join(clone, ".data/log/redis.log"), "utf8")).toMatch(/bye bye.*bye bye/s);
  expect(await readFile(join(clone, ".data/log/postgres.log"), "utf8")).toMatch(/shut down.*shut down/s);
});

function logIn(url: string, password: string): Promise<Response> {
  const headers = { "Sec-Fetch-Site": "same-origin" };
  const body = new URLSearchParams({ name: "tester", password });
  return fetch(`${url}/login`, { method: "POST", headers, body, redirect: "manual" });
}

/** `npm start`, ready. */
async function startHere() {
  const [port, adminPort] = [await freePort(), await freePort({ following: 4 })];
  const start = run("npm", ["start"], { ...hostEnvironment, PORT: String(port), ADMIN_PORT: String(adminPort) });
  const ended = start.exitCode.then((code) => {
    throw new Error(`npm start ended with ${code}:\n${start.output()}`);
  });
  ended.catch(() => {});
  const isReady = () => /Ready after .*Logs are in/s.test(start.output());
  await Promise.race([waitFor(isReady, { timeoutMs: startTimeoutMs }), ended]);
  return { ...start, port, adminPort };
}

function run(file: string, args: string[], env: NodeJS.ProcessEnv) {
  const child = spawn(file, args, { cwd: clone, env, stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const exitCode = once(child, "close").then(([code, signal]) => code ?? signal);
  return {
    output: () => output,
    exitCode,
    printedCommand(start: string): string {
      const command = output.split("\n").find((line) => line.startsWith(`  ${start}`));
      if (command === undefined) throw new Error(`No line that begins with ${start} in:\n${output}`);
      return command.trim();
    },
    stop(signal: NodeJS.Signals) {
      child.kill(signal);
      return exitCode;
    },
  };
}

/** As a person would, into a shell in the clone's folder. */
async function paste(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)("sh", ["-c", command], { cwd: clone, env: hostEnvironment });
  return stdout;
}

async function readEnvironment(): Promise<NodeJS.Dict<string>> {
  return parseEnv(await readFile(join(clone, ".data/env"), "utf8"));
}

function readBookings(): Promise<unknown[]> {
  return query("select partner, reference, state from bookings");
}

/** Who is connected to PostgreSQL. */
function readUsers(): Promise<unknown[]> {
  return query(
    `select distinct replace(application_name, ' (listening)', '') as program, usename::text as user, usesuper as "isSuperuser"
     from pg_stat_activity join pg_user using (usename) where application_name like 'booking-events-%' order by 1`,
  );
}

async function query(text: string): Promise<unknown[]> {
  const { DATABASE_URL: databaseUrl = "" } = await readEnvironment();
  const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    const { rows } = await pool.query(text);
    return rows;
  } finally {
    await pool.end();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
