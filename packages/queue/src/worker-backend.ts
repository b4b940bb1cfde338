import { type BackendFactory, createRedisBackend, type RedisQueueBackend, raw2NextJobData } from "bullmq";
import type { Redis } from "ioredis";
import { createDropGone } from "./drop-gone.ts";
import { type JobContent, wrapContent } from "./event-job.ts";
import { createEventFinisher } from "./finish-events.ts";
import type { HeldEvents } from "./held-events.ts";
import { createStalledMover, type StalledOptions } from "./move-stalled-events.ts";
import { queueName } from "./queue-name.ts";

/** BullMQ's scripts that may return the next job. */
const fetchingCommands: ReadonlySet<string> = new Set(["moveToActive", "moveToFinished", "moveToDelayed"]);

/**
 * Makes BullMQ's own backends for the workers of one process, except that
 *
 * - events that are done leave the queue together, and are followed by the next ones (`finish-events.ts`);
 * - a job's data stays the text that it is in Redis, and a job that BullMQ could not read can be handled
 *   (`event-job.ts`);
 * - an id without a job is dropped (`drop-gone.ts`);
 * - nothing is fetched while the process holds as many bytes as it may (`held-events.ts`);
 * - the events of workers that died keep their order (`move-stalled-events.ts`).
 */
export function createWorkerBackend(options: {
  redis: Redis;
  prefix: string;
  lockDurationMs: number;
  held: HeldEvents;
  stalled: StalledOptions;
  onGone?: (jobId: string) => void;
}): BackendFactory<RedisQueueBackend> {
  const { redis, prefix, held } = options;
  const markerKey = `${prefix}:${queueName}:marker`;
  const finish = createEventFinisher(options);
  const dropGone = createDropGone(redis, prefix);
  const moveStalled = createStalledMover(redis, prefix, options.stalled);

  return (name, workerOptions, connections) => {
    const backend = createRedisBackend(name, workerOptions, connections);
    const execCommand = backend.execCommand.bind(backend);
    const moveToActive = backend.moveToActive.bind(backend);
    const moveToCompleted = backend.moveToCompleted.bind(backend);
    const moveToFailed = backend.moveToFailed.bind(backend);
    const moveToDelayed = backend.moveToDelayed.bind(backend);
    const moveStalledJobsToWait = backend.moveStalledJobsToWait.bind(backend);
    const waitForJob = backend.waitForJob.bind(backend);

    backend.execCommand = async (client, commandName, args) => {
      const answer: unknown = await execCommand(client, commandName, args);
      if (fetchingCommands.has(commandName)) wrapNextJob(answer);
      return answer;
    };

    /** @returns whether there is no job, but only its id, which is dropped then */
    async function isDropped([json, jobId]: NextJobData): Promise<boolean> {
      const content = json?.data as JobContent | undefined;
      if (content?.isGone !== true) return false;
      await dropGone(String(jobId));
      options.onGone?.(String(jobId));
      return true;
    }

    async function fetchNext(token: string, workerName?: string): Promise<NextJobData> {
      for (;;) {
        const next: NextJobData = await moveToActive(token, workerName);
        if (!(await isDropped(next))) return next;
      }
    }

    // Without an answer, BullMQ's worker handles what it has, and then asks waitForJob for when to ask again.
    backend.moveToActive = async (token, workerName) =>
      held.isOpen() ? held.fetchOne(() => fetchNext(token, workerName)) : [];

    backend.waitForJob = async (timeoutSeconds) => {
      if (held.isOpen()) {
        const marker = await waitForJob(timeoutSeconds);
        if (marker === null || held.isOpen()) return marker;
        // It was taken away for an event that is not fetched here now, and would wake another process.
        await redis.zadd(markerKey, marker.score, marker.member);
      }
      await held.whenOpen();
      return null;
    };

    backend.moveToCompleted = async (job, returnValue, removeOnComplete, token, fetchNext) => {
      const { id: jobId, parentKey, opts } = job;
      // No job of ours, so there is nothing to be gained.
      if (
        jobId === undefined ||
        parentKey !== undefined ||
        opts.deduplication !== undefined ||
        removeOnComplete !== true
      )
        return { ...(await moveToCompleted(job, returnValue, removeOnComplete, token, false)), result: undefined };

      const answer = await finish({ jobId, token, wantsNext: fetchNext && backend.closing === undefined });
      if (typeof answer === "number" && answer < 0)
        throw backend.finishedErrors({ code: answer, jobId, command: "moveToFinished", state: "active" });
      let result: NextJobData | undefined;
      if (Array.isArray(answer)) result = raw2NextJobData(wrapNextJob(answer));
      if (answer === "ask" || (result !== undefined && (await isDropped(result))))
        result = await backend.moveToActive(token);
      return { result, finishedOn: Date.now() };
    };

    // The next job is then fetched like a first one, by moveToActive, which knows whether there is room for it.
    backend.moveToFailed = async (job, reason, removeOnFail, token, _fetchNext, fields) => ({
      ...(await moveToFailed(job, reason, removeOnFail, token, false, fields)),
      result: undefined,
    });
    backend.moveToDelayed = async (jobId, timestamp, delayMs, token, delayOptions) => {
      await moveToDelayed(jobId, timestamp, delayMs, token, { ...delayOptions, fetchNext: false });
    };

    backend.moveStalledJobsToWait = async () => (await moveStalled()) ?? moveStalledJobsToWait();
    return backend;
  };
}

type NextJobData = Awaited<ReturnType<RedisQueueBackend["moveToActive"]>>;

function wrapNextJob<Answer>(answer: Answer): Answer {
  if (Array.isArray(answer) && Array.isArray(answer[0])) wrapContent(answer[0], String(answer[1]));
  return answer;
}
