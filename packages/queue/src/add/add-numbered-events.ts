import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import type { Redis } from "ioredis";
import { digestSubject } from "../events/event-subject.ts";
import { jobOptionsText } from "../events/job-options.ts";
import { queueKeys, replayJobName } from "../events/queue-name.ts";
import { sequenceKey } from "../events/sequence.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { addJobInLua, listNames } from "./add-events.ts";

/** An event whose place in the order is known before it is queued. */
export type NumberedEvent = Omit<EventEnvelope, "version">;

/** An event that an operator puts back into the queue. */
export interface Replay {
  eventId: string;
  text: string;
  /** As parsed from the text. */
  envelope: Parameters<typeof digestSubject>[0];
}

/** An event's place would be after that of events to come. None was added. */
export class SequenceInFuture extends Error {
  override name = "SequenceInFuture";
}

/**
 * KEYS: the queue's wait, meta and marker, the last sequence number.
 * ARGV: the prefix of job keys, the jobs' options, their timestamp, the largest sequence number; then each event's id,
 * the job's name, its subject and envelope.
 * Returns how many events were added. The others are already in the queue. -1: the next event of a partner would get a
 * smaller number than the largest, so none was added.
 */
const addNumberedScript = defineScript(`
${addJobInLua}
${wakeWorkersInLua}
local time = redis.call('TIME')
local next = math.max(time[1] * 1000000 + time[2], tonumber(redis.call('GET', KEYS[4]) or '0') + 1)
if tonumber(ARGV[4]) >= next then return -1 end
local added = 0
for place = 5, #ARGV, 4 do
  if addJob(ARGV[1], KEYS[1], ARGV[place], ARGV[place + 1], ARGV[place + 2], ARGV[place + 3], ARGV[2], ARGV[3]) then
    added = added + 1
  end
end
wakeWorkers(KEYS[2], KEYS[3])
return added
`);

/**
 * Adds events that have their sequence numbers, in the given order. There is no deadline: an event that is added late
 * or twice takes the same place in the order.
 *
 * @returns how many were added. The others are already in the queue
 * @throws SequenceInFuture; what ioredis throws
 */
export async function addNumberedEvents(redis: Redis, prefix: string, events: NumberedEvent[]): Promise<number> {
  const jobs = events.map(({ sequence, ...event }) => {
    const text = JSON.stringify({ version: envelopeVersion, sequence, ...event });
    return [event.eventId, event.kind, digestSubject(event), text];
  });
  const added = await addJobs(redis, prefix, jobs, Math.max(0, ...events.map(({ sequence }) => sequence)));
  if (added === -1) throw new SequenceInFuture("The events are later than Redis' clock.");
  return added;
}

/** Adds an event that has left the queue before, with the same text. */
export async function addReplay(redis: Redis, prefix: string, replay: Replay): Promise<void> {
  const job = [replay.eventId, replayJobName, digestSubject(replay.envelope), replay.text];
  await addJobs(redis, prefix, [job], 0);
}

/** @param jobs the id, name, subject and data of each */
function addJobs(redis: Redis, prefix: string, jobs: string[][], maxSequence: number): Promise<number> {
  const queueKey = queueKeys(prefix);
  const keys = [...listNames.map(queueKey), sequenceKey(prefix)];
  const args = [queueKey(""), jobOptionsText, Date.now(), maxSequence, ...jobs.flat()];
  return runScript<number>(redis, addNumberedScript, keys, args);
}
