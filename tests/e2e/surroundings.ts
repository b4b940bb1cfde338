import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { createTestDatabase } from "@booking-events/harness/test-database";
import { createPool } from "@booking-events/store";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type RunningApp, runApp } from "./running-app.ts";

/** What the processes of one test need: a partner, a queue and a database. */
export interface Surroundings {
  environment: Record<string, string>;
  pool: ReturnType<typeof createPool>;
  /** Starts an app and, unless `isReady` is false, waits until it is ready. The end of the test kills it. */
  start(
    name: "ingest" | "worker",
    more?: { environment?: Record<string, string>; entry?: string; isReady?: false },
  ): Promise<RunningApp>;
}

/**
 * Prepares them for each test of the file, on the Redis and PostgreSQL that all tests share.
 *
 * @param secret of the partner acme
 * @returns a function for those of the current test
 */
export function prepareSurroundings(secret: string): () => Surroundings {
  let folder: string;
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let surroundings: Surroundings;
  const apps: RunningApp[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "booking-events-e2e-"));
    writePartnersFile(join(folder, "partners.json"), [partner("acme", { [secret]: null })]);
  });

  beforeEach(async () => {
    database = await createTestDatabase();
    const environment = {
      REDIS_URL: redisUrl(),
      DATABASE_URL: database.url,
      PARTNERS_FILE: join(folder, "partners.json"),
      QUEUE_PREFIX: uniquePrefix(),
    };
    surroundings = {
      environment,
      pool: createPool({ databaseUrl: database.url, applicationName: "test", maxConnections: 2, onError: () => {} }),
      async start(name, { environment: more = {}, isReady = true, ...options } = {}) {
        const app = await runApp(name, { ...environment, ...more }, options);
        apps.push(app);
        if (isReady) await app.untilReady();
        return app;
      },
    };
  });

  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.stop("SIGKILL")));
    await surroundings.pool.end();
    await database.drop();
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  return () => surroundings;
}
