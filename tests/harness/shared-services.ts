import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopLeftover } from "@booking-events/scripts/local-server";
import { isRunning, readRecord, saveRecord } from "@booking-events/scripts/process-record";
import { startPostgres, startRedis } from "@booking-events/scripts/services";
import { migrate } from "@booking-events/store";
import type { ProvidedContext } from "vitest";
import type { TestProject } from "vitest/node";
import { copyCluster } from "./base-backup.ts";
import { execute } from "./execute.ts";

declare module "vitest" {
  interface ProvidedContext {
    redisUrl: string;
    /** Of the administrator, who can create databases. */
    postgresUrl: string;
    templateDatabase: string;
    /** With an empty database, to copy. Its server has been stopped in good order. */
    postgresCluster: { data: string; password: string };
  }
}

const DIR_PREFIX = "booking-events-vitest-";
const TEMPLATE_DATABASE = "template_booking_events";

interface SharedServices {
  context: Pick<ProvidedContext, "redisUrl" | "postgresUrl" | "postgresCluster">;
  stop(): Promise<void>;
}

/** Vitest loads this file again for each project, so what the projects share is here. */
const run = globalThis as { bookingEventsServices?: Promise<SharedServices> | undefined };

/** Before the first test, starts a Redis and a PostgreSQL for all projects, and creates a migrated database to clone. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  run.bookingEventsServices ??= startServices();
  const { context, stop } = await run.bookingEventsServices;
  project.provide("redisUrl", context.redisUrl);
  project.provide("postgresUrl", context.postgresUrl);
  project.provide("postgresCluster", context.postgresCluster);
  project.provide("templateDatabase", TEMPLATE_DATABASE);

  return async () => {
    // All tests of all projects have ended.
    if (run.bookingEventsServices === undefined) return;
    run.bookingEventsServices = undefined;
    await stop();
  };
}

async function startServices(): Promise<SharedServices> {
  await cleanUpAfterKilledRuns();
  const dir = mkdtempSync(join(tmpdir(), DIR_PREFIX));
  chmodSync(dir, 0o711); // If we are root, PostgreSQL's user must pass through.
  saveRecord(ownerFile(dir), process.pid);
  // The processes that run tests inherit it. Nightly, it is set and empty.
  process.env["BUNDLES"] ??= join(dir, "bundles");
  mkdirSync(join(dir, "bundles"));
  const [redis, postgres] = await Promise.all([
    startRedis({ dir: redisDir(dir) }),
    // A test's database need not survive a power cut. Without fsync, creating one takes a third of the time.
    startPostgres({
      dir: postgresDir(dir),
      settings: { fsync: "off", full_page_writes: "off", synchronous_commit: "off", max_connections: "300" },
    }),
  ]);
  // Tests that need a PostgreSQL of their own copy it: see `startOwnPostgres`.
  const data = join(dir, "cluster");
  await postgres.stop();
  await copyCluster(join(postgres.home, "data"), data);
  await postgres.restart();
  await createTemplate(postgres.url);
  const { password } = new URL(postgres.url);
  return {
    context: { redisUrl: redis.url, postgresUrl: postgres.url, postgresCluster: { data, password } },
    async stop() {
      await Promise.all([redis.stop(), postgres.stop()]);
      rmSync(postgres.home, { recursive: true, force: true });
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function createTemplate(postgresUrl: string): Promise<void> {
  await execute(postgresUrl, `create database ${TEMPLATE_DATABASE}`);
  const templateUrl = new URL(postgresUrl);
  templateUrl.pathname = `/${TEMPLATE_DATABASE}`;
  await migrate(templateUrl.href);
}

/** A run that was killed could not stop its servers; the next one does. */
async function cleanUpAfterKilledRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const dir = join(tmpdir(), name);
    // No record: another user's directory, or one that is being created.
    const owner = name.startsWith(DIR_PREFIX) ? readRecord(ownerFile(dir)) : undefined;
    if (!owner || isRunning(owner)) continue;
    await stopLeftover(redisDir(dir), "SIGTERM");
    await stopLeftover(postgresDir(dir), "SIGINT");
    rmSync(dir, { recursive: true, force: true });
  }
}

const ownerFile = (dir: string) => join(dir, "owner.json");
const redisDir = (dir: string) => join(dir, "redis");
const postgresDir = (dir: string) => join(dir, "postgres");
