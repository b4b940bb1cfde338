import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import type { Redis } from "ioredis";
import { digestSubject } from "../events/event-subject.ts";
import { jobOptionsText } from "../events/job-options.ts";
import { queueKeys } from "../events/queue-name.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { addJobInLua, listNames } from "./add-events.ts";

/** An event whose place in the order is known before it is queued. */
export type NumberedEvent = Omit<EventEnvelope, "version">;

/**
 * KEYS: the queue's wait, meta and marker.
 * ARGV: the prefix of job keys, the jobs' options, their timestamp; then each event's id, kind, subject and envelope.
 * Returns how many events were added. The others are already in the queue.
 */
const addNumberedScript = defineScript(`
${addJobInLua}
${wakeWorkersInLua}
local added = 0
for place = 4, #ARGV, 4 do
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
 */
export async function addNumberedEvents(redis: Redis, prefix: string, events: NumberedEvent[]): Promise<number> {
  const queueKey = queueKeys(prefix);
  return runScript<number>(redis, addNumberedScript, listNames.map(queueKey), [
    queueKey(""),
    jobOptionsText,
    Date.now(),
    ...events.flatMap(({ sequence, ...event }) => [
      event.eventId,
      event.kind,
      digestSubject(event),
      JSON.stringify({ version: envelopeVersion, sequence, ...event }),
    ]),
  ]);
}
