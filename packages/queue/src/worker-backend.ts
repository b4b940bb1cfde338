import { type BackendFactory, createRedisBackend, type RedisQueueBackend, raw2NextJobData } from "bullmq";
import type { Redis } from "ioredis";
import { type JobContent, wrapContent } from "./event-job.ts";
import { createEventFinisher } from "./finish-events.ts";
import type { HeldEvents } from "./held-events.ts";
import { createStalledMover, type StalledOptions } from "./move-stalled-events.ts";
import { queueName } from "./queue-name.ts";
import { createMissingJobRemover } from "./remove-missing-job.ts";

/** BullMQ's scripts that may return the next job. */
const fetchingCommands: ReadonlySet<string> = new Set(["moveToActive", "moveToFinished", "moveToDelayed"]);

/**
 * Creates BullMQ's backends for the workers of one process, with these differences:
 *
 * - Finished events are removed together, and the next ones are fetched with them (`finish-events.ts`).
 * - A job's data stays the text that it is in Redis, and jobs that BullMQ cannot read can be handled (`event-job.ts`).
 * - An id without a job is removed (`remove-missing-job.ts`).
 * - Nothing is fetched while the process holds its maximum of bytes (`held-events.ts`).
 * - The events of dead workers keep their order (`move-stalled-events.ts`).
 */
export function createWorkerBackend(options: {
  redis: Redis;
  prefix: string;
  lockDurationMs: number;
  held: HeldEvents;
  stalled: StalledOptions;
  onMissingJob?: (jobId: string) => void;
}): BackendFactory<RedisQueueBackend> {
  const { redis, prefix, held, onMissingJob = () => {} } = options;
  const finishEvent = createEventFinisher(options);
  const removeMissingJob = createMissingJobRemover(redis, prefix);
  const moveStalled = createStalledMover(redis, prefix, options.stalled);

  const removeIfMissing: RemoveIfMissing = async ([json, jobId]) => {
    const content = json?.data as JobContent | undefined;
    if (content?.isMissing !== true) return false;
    await removeMissingJob(String(jobId));
    onMissingJob(String(jobId));
    return true;
  };

  return (name, workerOptions, connections) => {
    const backend = createRedisBackend(name, workerOptions, connections);
    keepTextOfJobs(backend);
    fetchWhileThereIsRoom(backend, { redis, markerKey: `${prefix}:${queueName}:marker`, held, removeIfMissing });
    finishTogether(backend, { finishEvent, removeIfMissing });
    fetchSeparatelyAfterFailure(backend);
    keepOrderOfStalledEvents(backend, moveStalled);
    return backend;
  };
}

/** @returns whether the job is missing; its id has then been removed */
type RemoveIfMissing = (job: NextJobData) => Promise<boolean>;

function keepTextOfJobs(backend: RedisQueueBackend): void {
  const execCommand = backend.execCommand.bind(backend);

  backend.execCommand = async (client, commandName, args) => {
    const answer: unknown = await execCommand(client, commandName, args);
    if (fetchingCommands.has(commandName)) wrapNextJob(answer);
    return answer;
  };
}

function fetchWhileThereIsRoom(
  backend: RedisQueueBackend,
  options: { redis: Redis; markerKey: string; held: HeldEvents; removeIfMissing: RemoveIfMissing },
): void {
  const { redis, markerKey, held, removeIfMissing } = options;
  const moveToActive = backend.moveToActive.bind(backend);
  const waitForJob = backend.waitForJob.bind(backend);

  async function fetchNext(token: string, workerName?: string): Promise<NextJobData> {
    for (;;) {
      const next: NextJobData = await moveToActive(token, workerName);
      if (!(await removeIfMissing(next))) return next;
    }
  }

  // Without a job, BullMQ's worker finishes the jobs it has and then calls waitForJob to learn when to ask again.
  backend.moveToActive = async (token, workerName) =>
    held.hasRoom() ? held.fetchOne(() => fetchNext(token, workerName)) : [];

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

function finishTogether(
  backend: RedisQueueBackend,
  { finishEvent, removeIfMissing }: { finishEvent: FinishEvent; removeIfMissing: RemoveIfMissing },
): void {
  const moveToCompleted = backend.moveToCompleted.bind(backend);

  backend.moveToCompleted = async (job, returnValue, removeOnComplete, token, fetchNext) => {
    const { id: jobId, parentKey, opts } = job;
    const isOurs = parentKey === undefined && opts.deduplication === undefined && removeOnComplete === true;
    if (jobId === undefined || !isOurs)
      return { ...(await moveToCompleted(job, returnValue, removeOnComplete, token, false)), result: undefined };

    const answer = await finishEvent({ jobId, token, wantsNext: fetchNext && backend.closing === undefined });
    if (typeof answer === "number" && answer < 0)
      throw backend.finishedErrors({ code: answer, jobId, command: "moveToFinished", state: "active" });
    let result: NextJobData | undefined;
    if (Array.isArray(answer)) result = raw2NextJobData(wrapNextJob(answer));
    if (answer === "ask" || (result !== undefined && (await removeIfMissing(result))))
      result = await backend.moveToActive(token);
    return { result, finishedOn: Date.now() };
  };
}

/** After a failure, moveToActive fetches the next job, because it knows whether there is room. */
function fetchSeparatelyAfterFailure(backend: RedisQueueBackend): void {
  const moveToFailed = backend.moveToFailed.bind(backend);
  const moveToDelayed = backend.moveToDelayed.bind(backend);

  backend.moveToFailed = async (job, reason, removeOnFail, token, _fetchNext, fields) => ({
    ...(await moveToFailed(job, reason, removeOnFail, token, false, fields)),
    result: undefined,
  });
  backend.moveToDelayed = async (jobId, timestamp, delayMs, token, delayOptions) => {
    await moveToDelayed(jobId, timestamp, delayMs, token, { ...delayOptions, fetchNext: false });
  };
}

function keepOrderOfStalledEvents(
  backend: RedisQueueBackend,
  moveStalled: ReturnType<typeof createStalledMover>,
): void {
  const moveStalledJobsToWait = backend.moveStalledJobsToWait.bind(backend);

  backend.moveStalledJobsToWait = async () => (await moveStalled()) ?? moveStalledJobsToWait();
}

type FinishEvent = ReturnType<typeof createEventFinisher>;
type NextJobData = Awaited<ReturnType<RedisQueueBackend["moveToActive"]>>;

function wrapNextJob<Answer>(answer: Answer): Answer {
  if (Array.isArray(answer) && Array.isArray(answer[0])) wrapContent(answer[0], String(answer[1]));
  return answer;
}
