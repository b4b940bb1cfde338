import { noLimit } from "@booking-events/harness/partners-file";
import { type Contestant, newQueuePrefix, startContestant, writePartners } from "./contestant.ts";
import type { BenchDatabase } from "./data-services.ts";
import { countLeft } from "./measure-apply.ts";
import type { Bench } from "./scenario.ts";

/** One ingest process and one worker, with a queue and a database of their own. */
export interface Pipeline {
  /** Where events are posted to create bookings. */
  url: string;
  ingest: Contestant;
  worker: Contestant;
  database: BenchDatabase;
  /** Events that were accepted and not yet applied. */
  countBacklog(): Promise<number>;
  stop(): Promise<void>;
}

export interface PipelinePrograms {
  ingest: readonly string[];
  worker: readonly string[];
  concurrency: string;
}

export async function startPipeline(bench: Bench, programs: PipelinePrograms): Promise<Pipeline> {
  const { services } = bench;
  const { file, secretOf } = writePartners(bench, { acme: noLimit });
  const queuePrefix = newQueuePrefix();
  const database = await services.createDatabase();
  const shared = { REDIS_URL: services.redisUrl, QUEUE_PREFIX: queuePrefix };
  const worker = await startContestant(bench, programs.worker, {
    ...{ ...shared, DATABASE_URL: database.url, CONCURRENCY: programs.concurrency, LOG_LEVEL: "warn" },
  });
  const ingest = await startContestant(bench, programs.ingest, { ...shared, PARTNERS_FILE: file });
  return {
    url: `${ingest.url}/booking-event/create/${secretOf["acme"]}`,
    ingest,
    worker,
    database,
    countBacklog: () => countLeft(bench, queuePrefix),
    async stop() {
      await Promise.all([ingest.stop(), worker.stop()]);
      await database.drop();
      await services.emptyRedis();
    },
  };
}
