import { execFile } from "node:child_process";
import { chownSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";

const run = promisify(execFile);

/**
 * Copies a cluster's files while PostgreSQL changes them. The WAL makes the copy consistent. The embedded PostgreSQL
 * has no pg_basebackup, so this calls the functions that it uses.
 *
 * @param url of an administrator
 * @param from the cluster's data folder
 * @param to is created. PostgreSQL needs WAL from an archive or a primary to start from it
 */
export async function takeBaseBackup(url: string, from: string, to: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("select pg_backup_start('backup', fast => true)");
    await copyCluster(from, to);
    // If WAL is archived, this waits until the archive has what the backup needs.
    const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop()");
    writeToCluster(to, "backup_label", rows[0]?.labelfile ?? "");
  } finally {
    await client.end();
  }
  for (const folder of ["pg_wal", "pg_replslot"].map((name) => join(to, name)))
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  for (const name of ["postmaster.pid", "postmaster.opts"]) rmSync(join(to, name));
}

/** Copies files with their owners and modes. PostgreSQL may remove some of them meanwhile. */
export async function copyCluster(from: string, to: string): Promise<void> {
  try {
    await run("cp", ["-a", from, to], { env: { ...process.env, LC_ALL: "C" } });
  } catch (error) {
    const complaints = String((error as { stderr?: string }).stderr)
      .trim()
      .split("\n");
    if (!complaints.every((line) => line.endsWith("No such file or directory"))) throw error;
  }
}

/** Writes a file that belongs to the cluster's owner. */
export function writeToCluster(data: string, name: string, content: string): void {
  const path = join(data, name);
  writeFileSync(path, content, { mode: 0o600 });
  const { uid, gid } = statSync(data);
  if (process.getuid?.() === 0) chownSync(path, uid, gid);
}
