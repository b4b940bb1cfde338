import {
  type BackendFactory,
  Job,
  type JobJson,
  type JobProgress,
  type Processor,
  Queue,
  type RedisQueueBackend,
  Worker,
  type WorkerOptions,
} from "bullmq";
import { ownSubject } from "./event-subject.ts";
import { findDamage, isGone, type JobFields } from "./job-damage.ts";
import { jobOptions } from "./job-options.ts";

/**
 * What `data` is in our jobs. BullMQ would parse the text, and throw where it is no JSON; here it is passed on as it
 * came out of Redis, and only who works on the event parses it.
 */
export interface JobContent {
  text: string;
  subject: string;
  /** What of the job can't be read, as a sentence without any value; null: nothing. */
  damage: string | null;
  /** There is no job, only its id in a list. */
  isGone: boolean;
}

/** BullMQ's own text for a job that has no data. */
const noData = "{}";

/**
 * Puts a {@link JobContent} in the place of a job's data, in the fields as a script of BullMQ's or ours returns them.
 * BullMQ hands it on untouched to {@link EventJob.fromJSON}; of a field that it doesn't know, it would hand on nothing.
 *
 * Of a job that BullMQ could not read, nothing but that is left, so that it can be handled like any other.
 *
 * @returns the fields as they were
 */
export function wrapContent(fields: unknown[], jobId: string): JobFields {
  const byName = toMap(fields);
  const content: JobContent = {
    text: String(byName.get("data") ?? "") || noData,
    subject: String(byName.get("subject") ?? ownSubject(jobId)),
    damage: findDamage(byName),
    isGone: isGone(byName),
  };
  if (content.damage !== null) {
    fields.length = 0;
    fields.push("name", damagedJobName, "opts", JSON.stringify(jobOptions), "timestamp", "0", "data", content);
    return byName;
  }
  const dataAt = fields.indexOf("data");
  if (dataAt % 2 === 0) fields[dataAt + 1] = content;
  else fields.push("data", content);
  return byName;
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

/** A job that was looked up by its id comes with its text, one that was fetched with what {@link wrapContent} made. */
function toContent(data: string | JobContent, jobId: string): JobContent {
  return typeof data === "string" ? { text: data, subject: ownSubject(jobId), damage: null, isGone: false } : data;
}

export class EventQueue extends Queue<JobContent> {
  protected override get Job(): typeof Job {
    return EventJob;
  }
}

export class EventWorker extends Worker<JobContent> {
  readonly #onFetched: (job: Job<JobContent>) => void;

  /** @param onFetched told of each job that will be handed to `handle`, within the turn in which its fetch is answered */
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

  protected override createJob(json: JobJson, jobId: string): Job<JobContent> {
    const job = super.createJob(json, jobId);
    // Such a one goes to those that failed, without being handled: it stalled too often.
    if (job.deferredFailure === undefined) this.#onFetched(job);
    return job;
  }
}
