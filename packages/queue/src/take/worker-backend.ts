import { setTimeout as sleep } from "node:timers/promises";
import { type BackendFactory, createRedisBackend, type JobJson, type RedisQueueBackend } from "bullmq";
import type { Redis } from "ioredis";
import { type JobContent, wrapContent } from "../events/event-job.ts";
import { queueKeys } from "../events/queue-name.ts";
import { createEventFetcher } from "./fetch-events.ts";
import { createEventFinisher } from "./finish-events.ts";
import type { HeldEvents } from "./held-events.ts";
import { createStalledMover, type StalledOptions } from "./move-stalled-events.ts";
import { createRetryNoter } from "./note-retry.ts";
import { createMissingJobRemover } from "./remove-missing-job.ts";

/** BullMQ's scripts that may return the next job. */
const fetchingCommands: ReadonlySet<string> = new Set(["moveToActive", "moveToFinished", "moveToDelayed"]);

/** Begins to process a fetched job. The job is held when this returns. */
export type BeginJob = (json: JobJson, jobId: string, token: string) => void;

/**
 * Creates BullMQ's backend for the worker of a consumer, with these differences:
 *
 * - Waiting events are fetched together (`fetch-events.ts`), while the consumer holds less than its maximum
 *   (`held-events.ts`).
 * - Finished events are removed together (`finish-events.ts`).
 * - A job's data stays the text that it is in Redis, and jobs that BullMQ cannot read can be handled (`event-job.ts`).
 * - An id without a job is removed (`remove-missing-job.ts`).
 * - The events that are delivered again are noted (`note-retry.ts`).
 * - The events of dead workers keep their order (`move-stalled-events.ts`).
 */
export function createWorkerBackend(
  options: StalledOptions & {
    redis: Redis;
    prefix: string;
    /** Returns the id of the database to which the events will be applied. */
    database: () => string;
    held: HeldEvents;
    begin: BeginJob;
    onMissingJob?: (jobId: string) => void;
  },
): BackendFactory<RedisQueueBackend> {
  const { redis, prefix, held, begin, onMissingJob = () => {} } = options;
  const fetchEvents = createEventFetcher(options);
  const finishEvent = createEventFinisher(redis, prefix);
  const removeMissingJob = createMissingJobRemover(redis, prefix);
  const noteRetry = createRetryNoter(redis, prefix);
  const moveStalled = createStalledMover(redis, prefix, options);

  async function beginOrRemove([json, jobId]: NextJobData, token: string): Promise<void> {
    const content = json?.data as JobContent | undefined;
    if (content?.isMissing !== true) return begin(json, String(jobId), token);
    await removeMissingJob(String(jobId));
    onMissingJob(String(jobId));
  }

  return (name, workerOptions, connections) => {
    const backend = createRedisBackend(name, workerOptions, connections);
    keepTextOfJobs(backend);
    fetchTogether(backend, { fetchEvents, held, beginOrRemove });
    waitForRoom(backend, { redis, markerKey: queueKeys(prefix)("marker"), held });
    finishTogether(backend, finishEvent);
    fetchSeparatelyAfterFailure(backend, noteRetry);
    backend.moveStalledJobsToWait = moveStalled;
    return backend;
  };
}

function keepTextOfJobs(backend: RedisQueueBackend): void {
  const execCommand = backend.execCommand.bind(backend);

  backend.execCommand = async (client, commandName, args) => {
    const answer: unknown = await execCommand(client, commandName, args);
    const fetchesJob = fetchingCommands.has(commandName) && Array.isArray(answer) && Array.isArray(answer[0]);
    if (fetchesJob) wrapContent(answer[0], String(answer[1]));
    return answer;
  };
}

/** How often events are fetched while they keep coming: whenever `performance.now()` is a multiple of it. */
export const fetchIntervalMs = 20;

/** After a fetch has failed. BullMQ's worker, which has begun events and expects others, would ask again immediately. */
const failurePauseMs = 1_000;

/**
 * All consumers of a process fetch at the same times, so events of several shards get into the same batch, and a Redis
 * that has several shards writes them to disk together.
 */
async function untilNextFetch(): Promise<void> {
  await sleep(fetchIntervalMs - (performance.now() % fetchIntervalMs));
}

/**
 * Begins all waiting events for which there is room, and tells BullMQ's worker that there is no job. The worker then
 * calls `waitForJob` to learn when to ask again.
 *
 * After a fetch that brought several events, others are likely to come soon. So there is another fetch before the worker
 * waits, because being woken costs a further call, and Redis a further write to disk.
 */
function fetchTogether(
  backend: RedisQueueBackend,
  options: {
    fetchEvents: ReturnType<typeof createEventFetcher>;
    held: HeldEvents;
    beginOrRemove: (job: NextJobData, token: string) => Promise<void>;
  },
): void {
  const { fetchEvents, held, beginOrRemove } = options;
  const moveToActive = backend.moveToActive.bind(backend);

  /** @returns BullMQ's answer if it has no job; undefined: it had one, so there may be others */
  async function fetchOne(token: string, workerName?: string): Promise<NextJobData | undefined> {
    const next: NextJobData = await moveToActive(token, workerName);
    if (next[1] == null || next[1] === 0) return next;
    await beginOrRemove(next, token);
    return undefined;
  }

  async function fetchAll(token: string, workerName?: string): Promise<NextJobData> {
    for (let call = 0; held.hasRoom(); call += 1) {
      let mayWait = false;
      const itsToken = `${token}:${call}`;
      const answer = await held.fetch(async (limits): Promise<NextJobData | undefined> => {
        const { jobs, left, delayedUntilMs } = await fetchEvents(itsToken, limits);
        await Promise.all(jobs.map((job) => beginOrRemove([job.json, job.jobId], itsToken)));
        if (left === "ask") return fetchOne(itsToken, workerName);
        if (left === "closed") {
          held.halt("database", true);
          return [];
        }
        if (left === "none" && jobs.length <= 1) return [undefined, undefined, 0, delayedUntilMs];
        mayWait = left === "none";
        return undefined;
      });
      if (answer !== undefined) return answer;
      if (mayWait) await untilNextFetch();
    }
    return [];
  }

  backend.moveToActive = async (token, workerName) => {
    try {
      return await fetchAll(token, workerName);
    } catch (error) {
      await sleep(failurePauseMs, undefined, { ref: false });
      throw error;
    }
  };
}

function waitForRoom(
  backend: RedisQueueBackend,
  { redis, markerKey, held }: { redis: Redis; markerKey: string; held: HeldEvents },
): void {
  const waitForJob = backend.waitForJob.bind(backend);

  backend.waitForJob = async (timeoutSeconds) => {
    if (held.hasRoom()) {
      const marker = await waitForJob(timeoutSeconds);
      if (marker === null || held.hasRoom()) return marker;
      // The marker was taken for an event that is not fetched here now, so it is restored to wake another process.
      await redis.zadd(markerKey, marker.score, marker.member);
    }
    await held.waitForRoom();
    return null;
  };
}

function finishTogether(backend: RedisQueueBackend, finishEvent: ReturnType<typeof createEventFinisher>): void {
  backend.moveToCompleted = async ({ id: jobId = "" }, _returnValue, _removeOnComplete, token) => {
    const code = await finishEvent({ jobId, token });
    if (code < 0) throw backend.finishedErrors({ code, jobId, command: "moveToFinished", state: "active" });
    return { result: undefined, finishedOn: Date.now() };
  };
}

/** Only moveToActive fetches jobs, because it knows whether there is room. */
function fetchSeparatelyAfterFailure(backend: RedisQueueBackend, noteRetry: (jobId: string) => Promise<void>): void {
  const moveToFailed = backend.moveToFailed.bind(backend);
  const moveToDelayed = backend.moveToDelayed.bind(backend);

  backend.moveToFailed = async (job, reason, removeOnFail, token, _fetchNext, fields) => ({
    ...(await moveToFailed(job, reason, removeOnFail, token, false, fields)),
    result: undefined,
  });
  backend.moveToDelayed = async (jobId, timestamp, delayMs, token, delayOptions) => {
    // First, so that whatever happens in between, no event that failed is left out.
    await noteRetry(jobId);
    await moveToDelayed(jobId, timestamp, delayMs, token, { ...delayOptions, fetchNext: false });
  };
}

type NextJobData = Awaited<ReturnType<RedisQueueBackend["moveToActive"]>>;
