import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { afterEach, beforeEach, expect, test } from "vitest";

const day = 24 * 60 * 60;

let folder: string;
let backups: string;
let script: ChildProcess | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-backup-"));
  backups = join(folder, "backups");
  mkdirSync(backups);
});

afterEach(() => {
  // With the `sleep` that it started.
  if (script?.pid !== undefined) process.kill(-script.pid, "SIGKILL");
  rmSync(folder, { recursive: true });
});

/**
 * Runs the script as its container does. The programs are stand-ins, because the PostgreSQL of the tests comes without
 * them.
 *
 * @returns what it prints so far
 */
function runBackup(programs: Record<string, string>, args: string[] = []): () => string {
  for (const [name, commands] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${commands}\n`, { mode: 0o755 });
  }
  let output = "";
  script = spawn("sh", ["deploy/backup.sh", ...args], {
    env: {
      PATH: `${folder}:${process.env["PATH"]}`,
      BACKUP_FOLDER: backups,
      BACKUP_KEEP_DAYS: "7",
      PGDATABASE: "booking_events",
    },
    detached: true,
  });
  for (const stream of [script.stdout, script.stderr]) stream?.on("data", (data) => (output += data));
  return () => output;
}

function addBackup(name: string, ageDays: number): string {
  writeFileSync(join(backups, name), "");
  const time = Date.now() / 1_000 - ageDays * day;
  utimesSync(join(backups, name), time, time);
  return name;
}

/** As pg_dump is called: `--format=custom --file=…`. */
const writesDump = 'echo data > "$' + '{2#--file=}"';

test("a backup is complete, readable only by its owner, and replaces those that are too old", async () => {
  const young = addBackup("booking-events-young.dump", 6);
  addBackup("booking-events-old.dump", 9);
  addBackup("booking-events-interrupted.dump.unfinished", 0);
  const output = runBackup({ pg_dump: writesDump, pg_restore: "exit 0" });
  const startedAtS = Math.floor(Date.now() / 1_000);
  await waitFor(() => readdirSync(backups).includes("backup.prom") && output().includes("Wrote"));
  const [name = "", ...others] = readdirSync(backups).filter((file) => file !== young && file !== "backup.prom");
  expect(others).toEqual([]);
  expect(name).toMatch(/^booking-events-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.dump$/);
  expect(statSync(join(backups, name)).mode & 0o777).toBe(0o600);
  // For the node exporter, which is another user.
  const report = join(backups, "backup.prom");
  expect(statSync(report).mode & 0o777).toBe(0o644);
  const [, atS] = /^booking_events_backup_success_timestamp_seconds (\d+)$/m.exec(readFileSync(report, "utf8")) ?? [];
  expect(Number(atS)).toBeGreaterThanOrEqual(startedAtS);
});

test("the newest dump is checked in a database beside, which is dropped also after a failure", async () => {
  addBackup("booking-events-2026-11-20T00-00-00Z.dump", 2);
  addBackup("booking-events-2026-11-22T00-00-00Z.dump", 0);
  const says = (name: string, result = 0) => `echo "${name} $*"; exit ${result}`;
  const programs = { createdb: says("createdb"), dropdb: says("dropdb"), psql: says("psql") };
  const newest = join(backups, "booking-events-2026-11-22T00-00-00Z.dump");
  for (const result of [0, 1]) {
    const output = runBackup({ ...programs, pg_restore: says("pg_restore", result) }, ["check"]);
    const [exitCode] = await once(script as ChildProcess, "close");
    expect(exitCode).toBe(result);
    const lines = output().split("\n");
    expect(lines.slice(0, 4)).toEqual([
      "dropdb --if-exists --force booking_events_check",
      "createdb booking_events_check",
      `Restoring ${newest}`,
      `pg_restore --dbname=booking_events_check --single-transaction --exit-on-error ${newest}`,
    ]);
    expect(lines.at(-2)).toBe("dropdb --force booking_events_check");
    script = undefined;
  }
});

test("a dump is restored only into an empty database", async () => {
  addBackup("booking-events-2026-11-22T00-00-00Z.dump", 0);
  const output = runBackup({ psql: "echo 12", pg_restore: "echo restored" }, ["restore"]);
  const [exitCode] = await once(script as ChildProcess, "close");
  script = undefined;
  expect([exitCode, output()]).toEqual([
    1,
    "booking_events is not empty. A dump is restored into an empty database only.\n",
  ]);
});

test.each([
  ["pg_dump fails", { pg_dump: `${writesDump}; exit 1`, pg_restore: "exit 0" }],
  ["pg_restore can't read it", { pg_dump: writesDump, pg_restore: "exit 1" }],
])("if %s, there is no new backup, and the old ones stay", async (_what, programs) => {
  const old = addBackup("booking-events-old.dump", 9);
  const output = runBackup(programs);
  await waitFor(() => output().includes("The dump failed."));
  expect(readdirSync(backups).filter((file) => !file.endsWith(".unfinished"))).toEqual([old]);
});
