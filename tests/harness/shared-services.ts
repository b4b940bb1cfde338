import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopLeftover } from "@booking-events/scripts/data-server";
import { isRunning, type ProcessRecord, recordProcess } from "@booking-events/scripts/process-record";
import { startPostgres, startRedis } from "@booking-events/scripts/services";
import { migrate } from "@booking-events/store";
import pg from "pg";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    redisUrl: string;
    /** Of the administrator, to create databases. */
    postgresUrl: string;
    templateDatabase: string;
  }
}

const DIR_PREFIX = "booking-events-test-";
const TEMPLATE_DATABASE = "template_booking_events";

/** Before the first test that needs them: a Redis and a PostgreSQL of their own, with a migrated database to clone. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  await clearUpAfterKilledRuns();
  const dir = mkdtempSync(join(tmpdir(), DIR_PREFIX));
  chmodSync(dir, 0o711); // PostgreSQL's user passes through, if we are root.
  writeFileSync(ownerFile(dir), JSON.stringify(recordProcess(process.pid)));
  const [redis, postgres] = await Promise.all([
    startRedis({ dir: redisDir(dir) }),
    // A test's database does not outlive the run, so it need not survive a power cut: creating one takes a third.
    startPostgres({
      dir: postgresDir(dir),
      settings: { fsync: "off", full_page_writes: "off", synchronous_commit: "off", max_connections: "300" },
    }),
  ]);
  await createTemplate(postgres.url);
  project.provide("redisUrl", redis.url);
  project.provide("postgresUrl", postgres.url);
  project.provide("templateDatabase", TEMPLATE_DATABASE);

  return async () => {
    await Promise.all([redis.stop(), postgres.stop()]);
    rmSync(postgres.home, { recursive: true, force: true });
    rmSync(dir, { recursive: true, force: true });
  };
}

async function createTemplate(postgresUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    await client.query(`create database ${TEMPLATE_DATABASE}`);
  } finally {
    await client.end();
  }
  const templateUrl = new URL(postgresUrl);
  templateUrl.pathname = `/${TEMPLATE_DATABASE}`;
  await migrate(templateUrl.href);
}

/** A run that was killed could not stop its servers; the next one does. */
async function clearUpAfterKilledRuns(): Promise<void> {
  const left = readdirSync(tmpdir())
    .filter((name) => name.startsWith(DIR_PREFIX))
    .map((name) => join(tmpdir(), name))
    .filter((dir) => !isOwned(dir));
  for (const dir of left) {
    await stopLeftover(redisDir(dir), "SIGTERM");
    await stopLeftover(postgresDir(dir), "SIGINT");
    rmSync(dir, { recursive: true, force: true });
  }
}

/** True also for a directory that can't be judged: another user's, or one that is being made. */
function isOwned(dir: string): boolean {
  try {
    const owner: ProcessRecord = JSON.parse(readFileSync(ownerFile(dir), "utf8"));
    return isRunning(owner);
  } catch {
    return true;
  }
}

const ownerFile = (dir: string) => join(dir, "owner.json");
const redisDir = (dir: string) => join(dir, "redis");
const postgresDir = (dir: string) => join(dir, "postgres");
