import {
  type BackendFactory,
  Job,
  type JobJson,
  type JobProgress,
  type Processor,
  Queue,
  type RedisQueueBackend,
  raw2NextJobData,
  Worker,
  type WorkerOptions,
} from "bullmq";
import { ownSubject } from "./event-subject.ts";
import { findDamage, isMissing, type JobFields } from "./job-damage.ts";
import { jobOptions, jobOptionsText } from "./job-options.ts";

/**
 * The content of `data` in our jobs. BullMQ would parse the text and throw if it is not JSON. Here the text stays as it
 * is in Redis, and only the code that processes the event parses it.
 */
export interface JobContent {
  text: string;
  subject: string;
  /** Which part of the job is damaged, as a sentence without any values; null if none is. */
  damage: string | null;
  /** Whether the job itself is missing and only its id is in a list. */
  isMissing: boolean;
}

/** The text that BullMQ stores for a job without data. */
const noData = "{}";

/**
 * Replaces a job's data by a {@link JobContent}, in the fields as a script returns them. BullMQ passes it on unchanged
 * to {@link EventJob.fromJSON}; it drops fields that it does not know.
 *
 * If BullMQ could not read the job, only the content is kept, so it can be processed like any other job.
 *
 * @returns the original fields
 */
export function wrapContent(fields: unknown[], jobId: string): JobFields {
  const byName = toMap(fields);
  const content: JobContent = {
    text: String(byName.get("data") ?? "") || noData,
    subject: String(byName.get("subject") ?? ownSubject(jobId)),
    damage: findDamage(byName),
    isMissing: isMissing(byName),
  };
  if (content.damage !== null) {
    fields.length = 0;
    fields.push("name", damagedJobName, "opts", jobOptionsText, "timestamp", "0", "data", content);
    return byName;
  }
  const dataAt = fields.indexOf("data");
  if (dataAt % 2 === 0) fields[dataAt + 1] = content;
  else fields.push("data", content);
  return byName;
}

/** @param fields as a script returns them */
export function readFields(fields: unknown[], jobId: string): JobJson {
  wrapContent(fields, jobId);
  return raw2NextJobData([fields, jobId, 0, 0])[0];
}

/**
 * Describes a job that has the fields and values of a new one, as {@link readFields} would. It has its options in common
 * with all others; BullMQ copies them.
 */
export function describeNewJob(job: {
  name: string;
  subject: string;
  text: string;
  timestamp: number;
  processedOn: number;
}): JobJson {
  const { name, subject, text, timestamp, processedOn } = job;
  const content: JobContent = { text: text || noData, subject, damage: null, isMissing: false };
  return {
    name,
    data: content as unknown as string,
    opts: jobOptions,
    timestamp,
    processedOn,
    progress: 0,
    delay: 0,
    priority: 0,
    attemptsStarted: 1,
    attemptsMade: 0,
    stalledCounter: 0,
  } as JobJson;
}

const damagedJobName = "damaged";

function toMap(fields: unknown[]): JobFields {
  const byName = new Map<string, unknown>();
  for (let at = 1; at < fields.length; at += 2) byName.set(String(fields[at - 1]), fields[at]);
  return byName;
}

export class EventJob<Data, Result, Name extends string, Progress extends JobProgress> extends Job<
  Data,
  Result,
  Name,
  Progress
> {
  static override fromJSON<Data, Result, Name extends string>(
    queue: Parameters<typeof Job.fromJSON>[0],
    json: JobJson,
    jobId?: string,
  ): Job<Data, Result, Name> {
    const job = Job.fromJSON<Data, Result, Name>(queue, { ...json, data: noData }, jobId);
    job.data = toContent(json.data, job.id ?? "") as Data;
    return job;
  }
}

/** A job that was read by its id has its text, and one that was fetched has the result of {@link wrapContent}. */
function toContent(data: string | JobContent, jobId: string): JobContent {
  return typeof data === "string" ? { text: data, subject: ownSubject(jobId), damage: null, isMissing: false } : data;
}

export class EventQueue extends Queue<JobContent> {
  protected override get Job(): typeof Job {
    return EventJob;
  }
}

/** BullMQ's worker waits for events and looks for stalled ones. Its backend fetches events and passes them to `begin`. */
export class EventWorker extends Worker<JobContent> {
  readonly #onFetched: (job: Job<JobContent>) => void;
  readonly #underWay = new Set<Promise<void>>();

  /**
   * @param onFetched called for each job that will be passed to `handle`, in the turn of the event loop in which its
   *   fetch is answered
   */
  constructor(
    name: string,
    handle: Processor<JobContent>,
    options: WorkerOptions & {
      createBackend: BackendFactory<RedisQueueBackend>;
      onFetched: (job: Job<JobContent>) => void;
    },
  ) {
    const { createBackend, onFetched, ...workerOptions } = options;
    super(name, handle, workerOptions, createBackend);
    this.#onFetched = onFetched;
  }

  protected override get Job(): typeof Job {
    return EventJob;
  }

  /**
   * Begins to process a job. BullMQ's main loop would fetch the next jobs first, one at a time, until there are no more
   * or the worker holds its maximum.
   */
  begin(json: JobJson, jobId: string, token: string): void {
    const processing = this.#process(json, jobId, token).finally(() => this.#underWay.delete(processing));
    this.#underWay.add(processing);
  }

  async #process(json: JobJson, jobId: string, token: string): Promise<void> {
    try {
      const job = await this.nextJobFromJobData(json, jobId, token);
      if (job !== undefined) await this.processJob(job, token, () => false);
    } catch (error) {
      this.emit("error", error instanceof Error ? error : new Error("A job failed.", { cause: error }));
    }
  }

  /** Also waits for the jobs that were begun, unless told not to. */
  override async pause(doNotWaitActive?: boolean): Promise<void> {
    await super.pause(doNotWaitActive);
    if (!doNotWaitActive) await Promise.all(this.#underWay);
  }

  protected override createJob(json: JobJson, jobId: string): Job<JobContent> {
    const job = super.createJob(json, jobId);
    // A job with a deferred failure stalled too often, so BullMQ fails it without processing it.
    if (job.deferredFailure === undefined) this.#onFetched(job);
    return job;
  }
}
