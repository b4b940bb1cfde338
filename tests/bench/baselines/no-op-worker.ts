/** BullMQ's worker with a processor that does nothing: what the queue alone takes. */
import { queueName } from "@booking-events/queue";
import { Worker } from "bullmq";
import { answerReady, redisOptions } from "./serve.ts";

const worker = new Worker(queueName, async () => {}, {
  connection: { ...redisOptions(), maxRetriesPerRequest: null },
  prefix: process.env["QUEUE_PREFIX"] ?? "",
  concurrency: Number(process.env["CONCURRENCY"]),
});
await worker.waitUntilReady();
answerReady();
process.on("SIGTERM", () => void worker.close().finally(() => process.exit(0)));
