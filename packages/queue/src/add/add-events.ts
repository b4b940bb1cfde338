import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import type { Redis } from "ioredis";
import { digestSubject } from "../events/event-subject.ts";
import { jobOptionsText } from "../events/job-options.ts";
import { queueKeys } from "../events/queue-name.ts";
import { SequenceTooFarAhead, SequenceTooFarBehind, sequenceKey, takeSequenceInLua } from "../events/sequence.ts";
import { wakeWorkersInLua } from "../events/wake-workers.ts";
import { clockPrecisionMs, createRedisClock, type RedisClock } from "../redis/clock.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/** An event that ingest has accepted. The queue adds the version and the sequence. */
export interface AcceptedEvent extends Omit<EventEnvelope, "version" | "sequence"> {
  /** The payload as JSON, if the caller has it. */
  payloadJson?: string | undefined;
}

type SerializedEvent = readonly [eventId: string, kind: string, subject: string, json: string];

/** Serializes an event. The JSON lacks its opening brace because the script prepends the version and the sequence. */
export function serializeEvent(event: AcceptedEvent, subject: string = digestSubject(event)): SerializedEvent {
  const { payload, payloadJson = JSON.stringify(payload), ...rest } = event;
  return [event.eventId, event.kind, subject, `${JSON.stringify(rest).slice(1, -1)},"payload":${payloadJson}}`];
}

/**
 * Defines `addJob(prefix, waitKey, id, name, subject, data, options, timestamp)` in Lua, which returns false if the job
 * is already in the queue. With `wakeWorkers`, it writes what BullMQ's `addStandardJob` writes for a job without a parent,
 * delay, priority or deduplication key, plus the subject; a test compares the two.
 */
export const addJobInLua = `
local function addJob(prefix, waitKey, id, name, subject, data, options, timestamp)
  local job = prefix .. id
  if redis.call('EXISTS', job) == 1 then return false end
  redis.call('HSET', job, 'name', name, 'subject', subject, 'data', data, 'opts', options, 'timestamp', timestamp,
    'delay', '0', 'priority', '0')
  redis.call('LPUSH', waitKey, id)
  return true
end
`;

/** The keys of the queue's lists that {@link addJobInLua} needs. */
export const listNames = ["wait", "meta", "marker"] as const;

/**
 * Adds all events to the queue in the given order, or none, and returns their sequence numbers.
 *
 * @param deadlineMs when to give up, as a value of `performance.now()`
 * @throws SequenceTooFarAhead, SequenceTooFarBehind; what ioredis throws. Redis adds nothing after the deadline,
 *   however late it reads the command, or if its clock was set back in the meantime, because it cannot tell then
 */
export type AddEvents = (events: SerializedEvent[], deadlineMs: number) => Promise<number[]>;

/**
 * Assigns sequence numbers and adds each event. One call handles all events in one round trip and one fsync. BullMQ
 * would create a job object, serialize its options and call a script for each event, after another round trip for the
 * sequence.
 *
 * An event that is already in the queue is not changed: ioredis sends a command again if its connection breaks.
 *
 * KEYS: the last sequence number; then the queue's wait, meta and marker.
 * ARGV: the time at which the command was sent and the deadline, in microseconds of Redis' clock; the prefix of job
 * keys, the jobs' options, their timestamp (the host's clock), the envelope's version; then each event as returned by
 * {@link serializeEvent}.
 * Returns Redis' clock and the first sequence number, or Redis' clock and why nothing was added.
 */
const addScript = defineScript(`
${takeSequenceInLua}
${addJobInLua}
${wakeWorkersInLua}
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local clockText = string.format('%.0f', clock)
if clock < tonumber(ARGV[1]) then return { clockText, 'set back' } end
if clock > tonumber(ARGV[2]) then return { clockText, 'too late' } end
local first, refusal = takeSequence(KEYS[1], clock, tonumber(ARGV[5]), (#ARGV - 6) / 4)
if not first then return { clockText, refusal } end
local sequence = first
for place = 7, #ARGV, 4 do
  local start = '{"version":' .. ARGV[6] .. ',"sequence":' .. string.format('%.0f', sequence) .. ','
  addJob(ARGV[3], KEYS[2], ARGV[place], ARGV[place + 1], ARGV[place + 2], start .. ARGV[place + 3], ARGV[4], ARGV[5])
  sequence = sequence + 1
end
wakeWorkers(KEYS[3], KEYS[4])
return { clockText, string.format('%.0f', first) }
`);

type AddScriptAnswer = [clock: string, firstOrReason: string];

/** @param clock is updated with the time in Redis' answers */
export function createEventAdder(redis: Redis, prefix: string, clock: RedisClock = createRedisClock(redis)): AddEvents {
  const queueKey = queueKeys(prefix);
  const keys = [sequenceKey(prefix), ...listNames.map(queueKey)];

  return async function addEvents(events, deadlineMs) {
    const aheadMs = await clock.aheadMs();
    const startedAtMs = performance.now();
    const [clockText, firstOrReason] = await runScript<AddScriptAnswer>(redis, addScript, keys, [
      Math.round((startedAtMs - clockPrecisionMs + aheadMs) * 1_000),
      Math.round((deadlineMs + aheadMs) * 1_000),
      queueKey(""),
      jobOptionsText,
      Date.now(),
      envelopeVersion,
      ...events.flat(),
    ]);
    const isOutOfTime = firstOrReason === "too late" || firstOrReason === "set back";
    if (isOutOfTime || performance.now() - startedAtMs < clockPrecisionMs) clock.learn(Number(clockText) / 1_000);
    if (firstOrReason === "too late") throw new Error("Redis read the events after their deadline.");
    if (firstOrReason === "set back") throw new Error("Redis' clock was set back while the events were in transit.");
    if (firstOrReason === "too far ahead")
      throw new SequenceTooFarAhead("The sequence numbers would be too far ahead of this host's clock.");
    if (firstOrReason === "too far behind")
      throw new SequenceTooFarBehind("Redis' clock is too far behind this host's.");
    return events.map((_, index) => Number(firstOrReason) + index);
  };
}
