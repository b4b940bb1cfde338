import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { type AppProcess, builtApps, fromSource, startApp } from "@booking-events/harness/app-process";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { createTestDatabase } from "@booking-events/harness/test-database";
import { type DataServer, type PostgresServer, startRedis } from "@booking-events/scripts/services";
import { createPool } from "@booking-events/store";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

/** One of the built apps as a process, as in production. */
export type RunningApp = AppProcess;

/**
 * @param environment all that the app sees, apart from the ports and PATH
 * @param options.entry another entry point, run from source
 */
export function runApp(
  name: AppName,
  environment: Record<string, string>,
  options: { entry?: string } = {},
): Promise<RunningApp> {
  return startApp(options.entry === undefined ? builtApps[name] : fromSource(options.entry), environment, {
    name,
    // Every secret of these tests begins with the first; every piece of a guest's data contains the second.
    neverPrinted: /a-secret-of|canary/i,
    // For speed, the PostgreSQL that tests share runs without fsync. The worker reports that and works on.
    toleratedProblems: /^PostgreSQL may lose/,
  });
}

type AppName = "ingest" | "worker" | "lookup" | "webhooks" | "console";

/** What the processes of a test need: a partner, a queue and a database. */
export interface Surroundings {
  environment: Record<string, string>;
  pool: ReturnType<typeof createPool>;
  /** Starts an app and, unless `isReady` is false, waits until it is ready. The end of the test kills it. */
  start(
    name: AppName,
    more?: { environment?: Record<string, string>; entry?: string; isReady?: false },
  ): Promise<RunningApp>;
}

/** Surroundings that all tests of a file share. To start a process takes longer than most tests. */
export interface SharedSurroundings extends Surroundings {
  folder: string;
  /**
   * The app that all tests share, ready. The first test that asks for it starts it, as does the next one after a test that
   * has stopped it. The end of the file kills it.
   */
  running(name: AppName): Promise<RunningApp>;
}

/**
 * Prepares them for all tests of the file, on the Redis and PostgreSQL that all tests share. Each test begins with
 * empty tables.
 *
 * @param secret of the partner acme
 */
export function shareSurroundings(secret: string): SharedSurroundings {
  const { surroundings, killApps, killSharedApps } = useSurroundings(secret);
  let closeDatabase: (() => Promise<void>) | undefined;

  beforeAll(async () => {
    closeDatabase = await openDatabase(surroundings);
  });

  beforeEach(() => emptyTables(surroundings.pool));

  afterEach(killApps);

  afterAll(async () => {
    await killSharedApps();
    await closeDatabase?.();
  });

  return surroundings;
}

/** Of what is known about bookings. */
export async function emptyTables(pool: Surroundings["pool"]): Promise<void> {
  await pool.query("truncate bookings, booking_events, booking_changes, dead_letters");
}

/**
 * Prepares them for each test of the file, on the Redis and PostgreSQL that all tests share.
 *
 * @param secret of the partner acme
 * @returns a function for those of the current test
 */
export function prepareSurroundings(secret: string): () => Surroundings {
  let closeDatabase: () => Promise<void>;
  const { surroundings, killApps } = useSurroundings(secret);

  beforeEach(async () => {
    closeDatabase = await openDatabase(surroundings);
  });

  afterEach(async () => {
    await killApps();
    await closeDatabase();
  });

  return () => surroundings;
}

/** With a Redis and a PostgreSQL of the file's own, whose tests may stop and change them. */
export interface OwnServices extends SharedSurroundings {
  redis: DataServer;
  postgres: PostgresServer;
}

/**
 * Prepares them once for all tests of the file. Before that, the result has no services.
 *
 * @param settings of PostgreSQL
 * @param createEnvironments returns variables for the servers
 */
export function useOwnServices(
  secret: string,
  settings: Readonly<Record<string, string>> = {},
  createEnvironments: () => Promise<Record<"redis" | "postgres", Readonly<Record<string, string>>>> = async () => ({
    redis: {},
    postgres: {},
  }),
): OwnServices {
  const { surroundings, killApps, killSharedApps } = useSurroundings(secret);
  const own = surroundings as OwnServices;

  beforeAll(async () => {
    const environments = await createEnvironments();
    [own.redis, own.postgres] = await Promise.all([
      startRedis({ dir: join(own.folder, "redis"), environment: environments.redis }),
      startOwnPostgres({ dir: join(own.folder, "postgres"), settings, environment: environments.postgres }),
    ]);
    own.pool = openPool(own.postgres.url);
    Object.assign(own.environment, { REDIS_URL: own.redis.url, DATABASE_URL: own.postgres.url });
  });

  afterEach(killApps);

  afterAll(async () => {
    await killSharedApps();
    await own.pool?.end();
    await Promise.all([own.redis?.stop(), own.postgres?.stop()]);
    if (own.postgres) await rm(own.postgres.home, { recursive: true, force: true });
  });

  return own;
}

function useSurroundings(secret: string) {
  const apps: RunningApp[] = [];
  const shared = new Map<AppName, RunningApp>();
  const surroundings: SharedSurroundings = {
    folder: "",
    environment: {},
    pool: undefined as unknown as Surroundings["pool"], // Until the services run.
    async start(name, { environment = {}, isReady = true, ...options } = {}) {
      const app = await runApp(name, { ...surroundings.environment, ...environment }, options);
      apps.push(app);
      if (isReady) await app.untilReady();
      return app;
    },
    async running(name) {
      const before = shared.get(name);
      const app = before?.isRunning() ? before : await runApp(name, surroundings.environment);
      shared.set(name, app);
      await app.untilReady();
      return app;
    },
  };

  beforeAll(async () => {
    surroundings.folder = await mkdtemp(join(tmpdir(), "booking-events-e2e-"));
    const partnersFile = join(surroundings.folder, "partners.json");
    surroundings.environment["PARTNERS_FILE"] = partnersFile;
    writePartnersFile(partnersFile, [partner("acme", { [secret]: null }, { rateLimit: noLimit })]);
  });

  afterAll(() => rm(surroundings.folder, { recursive: true, force: true }));
  const kill = (some: readonly RunningApp[]) => Promise.all(some.map((app) => app.stop("SIGKILL")));
  return {
    surroundings,
    killApps: () => kill(apps.splice(0)),
    killSharedApps: () => kill([...shared.values()]),
  };
}

/** @returns what closes and drops it */
async function openDatabase(surroundings: Surroundings): Promise<() => Promise<void>> {
  const database = await createTestDatabase();
  const pool = openPool(database.url);
  surroundings.pool = pool;
  const services = { REDIS_URL: redisUrl(), DATABASE_URL: database.url, QUEUE_PREFIX: uniquePrefix() };
  Object.assign(surroundings.environment, services);
  return async () => {
    await pool.end();
    await database.drop();
  };
}

function openPool(databaseUrl: string): ReturnType<typeof createPool> {
  return createPool({ databaseUrl, applicationName: "test", maxConnections: 2, onError: () => {} });
}
