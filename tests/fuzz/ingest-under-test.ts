import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AppProcess, builtApps, startApp } from "@booking-events/harness/app-process";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";

/** The first is valid; of the others each is refused for a reason of its own. */
export const secrets = ["fuzz-valid-secret", "fuzz-expired-secret", "fuzz-nobody", ""] as const;

export interface IngestUnderTest extends AppProcess {
  /** Sockets, timers and whatever else the process holds open. */
  countHandles(): Promise<number>;
  /** Accepts an event as it should. */
  isWell(): Promise<boolean>;
}

/**
 * Ingest as a process of its own, at the log level that says most.
 *
 * @param options.entry is given to Node; the built ingest by default
 */
export async function startIngestUnderTest(options: {
  redisUrl: string;
  queuePrefix: string;
  entry?: readonly string[];
}): Promise<IngestUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-fuzz-"));
  const partnersFile = join(folder, "partners.json");
  const [valid, expired] = secrets;
  writePartnersFile(partnersFile, [
    partner("fuzz", { [valid]: null, [expired]: "2026-01-02T00:00:00Z" }, { rateLimit: noLimit }),
  ]);
  const app = await startApp(options.entry ?? builtApps.ingest, {
    REDIS_URL: options.redisUrl,
    QUEUE_PREFIX: options.queuePrefix,
    PARTNERS_FILE: partnersFile,
    LOG_LEVEL: "trace",
  });
  await app.untilReady();

  return {
    ...app,
    async countHandles() {
      return Number(/^nodejs_active_resources_total\{.*\} (\d+)$/m.exec(await app.metrics())?.[1] ?? Number.NaN);
    },
    async isWell() {
      const response = await fetch(`${app.url}/booking-event/create/${valid}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"consumerTripPartnerExternalReference":"AFTER"}',
      });
      return response.status === 200;
    },
    async stop() {
      const code = await app.stop();
      await rm(folder, { recursive: true, force: true });
      return code;
    },
  };
}
