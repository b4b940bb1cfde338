/**
 * A BullMQ worker with one transaction for each job, as BullMQ's documentation suggests. It applies events with our code,
 * and differs only in the number of events in a transaction.
 */
import { queueName } from "@booking-events/queue";
import { parseEnvelope } from "@booking-events/schema";
import { createPool, migrate, openDigestKey } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { Worker } from "bullmq";
import { answerReady, redisOptions } from "./serve.ts";

const databaseUrl = process.env["DATABASE_URL"] ?? "";
const concurrency = Number(process.env["CONCURRENCY"]);
await migrate(databaseUrl);
const pool = createPool({ databaseUrl, applicationName: "textbook", maxConnections: concurrency, onError: () => {} });
const digestKey = await openDigestKey(pool, undefined);

const worker = new Worker(
  queueName,
  async (job) => {
    const parsed = parseEnvelope(job.data);
    if (!parsed.success) throw new Error(parsed.problem);
    await applyEvents(pool, [parsed.envelope], { digestKey, duplicateWindowMs: 72 * 3_600_000, isAlone: true });
  },
  {
    connection: { ...redisOptions(), maxRetriesPerRequest: null },
    prefix: process.env["QUEUE_PREFIX"] ?? "",
    concurrency,
  },
);
await worker.waitUntilReady();
answerReady();
process.on("SIGTERM", () => void worker.close().finally(() => process.exit(0)));
