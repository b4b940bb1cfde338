import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AppProcess, builtApps, startApp } from "@booking-events/harness/app-process";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { waitFor } from "@booking-events/harness/wait-for";
import { fuzzIngest } from "./fuzz-ingest.ts";
import { canary, secrets } from "./requests.ts";

const [validSecret, expiredSecret] = secrets;
/** Connections that are closed, and that Node has not cleaned up yet. */
const spareHandles = 10;
/** What was sent, the valid secret, and what Node or the app logs of errors that nobody caught. */
const neverLogged = [canary, validSecret, '"level":"fatal"', '"level":"error"', "Warning:"];

/**
 * Starts an ingest at the most verbose log level, fuzzes it, and checks that it works afterwards as before.
 *
 * @returns how often each status was answered
 * @throws an error that says what is wrong, with the seed and the bytes if it was an answer
 */
export async function checkIngest(options: {
  redisUrl: string;
  queuePrefix: string;
  connections: number;
  seed: number;
}): Promise<Map<string, number>> {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-fuzz-"));
  const partnersFile = join(folder, "partners.json");
  writePartnersFile(partnersFile, [
    partner("fuzz", { [validSecret]: null, [expiredSecret]: "2026-01-02T00:00:00Z" }, { rateLimit: noLimit }),
  ]);
  const ingest = await startApp(builtApps.ingest, {
    REDIS_URL: options.redisUrl,
    QUEUE_PREFIX: options.queuePrefix,
    PARTNERS_FILE: partnersFile,
    LOG_LEVEL: "trace",
  });
  try {
    await ingest.untilReady();
    await untilAccepts(ingest, "Ingest does not accept an event before the first wrong one.");
    const handlesBefore = await countHandles(ingest);
    const statuses = await fuzzIngest({ ...options, port: ingest.port });
    await checkAfterwards(ingest, handlesBefore);
    return statuses;
  } finally {
    await ingest.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function checkAfterwards(ingest: AppProcess, handlesBefore: number): Promise<void> {
  await untilAccepts(ingest, "Ingest no longer accepts an event.");
  await waitFor(
    async () => {
      const handles = await countHandles(ingest);
      if (handles <= handlesBefore + spareHandles) return true;
      throw new Error(`It holds ${handles} handles, ${handlesBefore} before.`);
    },
    { timeoutMs: 30_000 },
  );
  const code = await ingest.stop();
  const output = ingest.output();
  if (code !== 0) throw new Error(`Ingest did not shut down cleanly:\n${output.slice(-2_000)}`);
  const lines = output.split("\n");
  const bad = lines.find((line) => neverLogged.some((pattern) => line.includes(pattern)));
  if (bad !== undefined) throw new Error(`The log has a line that it must not have: ${bad.slice(0, 500)}`);
}

/** It may be shedding load, or Redis may be slow: a sender would try a 503 again, too. */
async function untilAccepts(ingest: AppProcess, problem: string): Promise<void> {
  await waitFor(() => accepts(ingest), { timeoutMs: 15_000 }).catch((cause) => {
    throw new Error(problem, { cause });
  });
}

async function accepts({ url }: AppProcess): Promise<boolean> {
  const response = await fetch(`${url}/booking-event/create/${validSecret}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: '{"consumerTripPartnerExternalReference":"AFTER"}',
  });
  return response.status === 200;
}

/** Sockets, timers and whatever else the process holds open. */
async function countHandles(ingest: AppProcess): Promise<number> {
  return Number(/^nodejs_active_resources_total\{.*\} (\d+)$/m.exec(await ingest.metrics())?.[1]);
}
