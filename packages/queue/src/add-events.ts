import { type EventEnvelope, envelopeVersion } from "@booking-events/schema";
import type { Redis } from "ioredis";
import { digestSubject } from "./event-subject.ts";
import { jobOptions } from "./job-options.ts";
import { queueName } from "./queue-name.ts";
import { clockPrecisionMs, createRedisClock, type RedisClock } from "./redis-clock.ts";
import { defineScript, runScript } from "./run-script.ts";
import { SequenceTooFarAhead, sequenceKey, takeSequenceInLua } from "./sequence.ts";

/** An event as ingest accepted it; the queue adds the version and the sequence. */
export type AcceptedEvent = Omit<EventEnvelope, "version" | "sequence">;

/** What the script takes for one event. */
type SerializedEvent = readonly [eventId: string, kind: string, subject: string, json: string];

/** The JSON is without its opening brace, since the script puts the version and the sequence in front. */
export function serializeEvent(event: AcceptedEvent): SerializedEvent {
  return [event.eventId, event.kind, digestSubject(event), JSON.stringify(event).slice(1)];
}

/**
 * Puts the events into the queue, all or none, in the order given, and returns their sequence numbers.
 *
 * @param deadlineMs when to give up, of `performance.now()`
 * @throws SequenceTooFarAhead; what ioredis throws. Redis adds nothing after the deadline, however late it gets to read
 *   the command; nor if its clock was set back since, so that it can't tell
 */
export type AddEvents = (events: SerializedEvent[], deadlineMs: number) => Promise<number[]>;

/**
 * Numbers the events and writes each as BullMQ's own `addStandardJob` would write a job without a parent, a delay, a
 * priority or a deduplication key, with one field more, its subject; a test compares the two. One call does it for all,
 * in one round trip and one fsync; BullMQ makes a job object, packs its options and calls a script for each, after the
 * round trip for the sequence.
 *
 * An event that is in the queue already stays as it is: ioredis sends a command again whose connection broke.
 *
 * KEYS: the last sequence number; then the queue's wait, active, meta and marker.
 * ARGV: when the command was sent, and the deadline, in microseconds of this clock; the prefix of job keys, the jobs'
 * options, their timestamp (the host's clock), the envelope's version; then each event as {@link serializeEvent} makes
 * it.
 * Returns the clock and the first sequence number, or why nothing was added.
 */
const addScript = defineScript(`
${takeSequenceInLua}
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local shownClock = string.format('%.0f', clock)
if clock < tonumber(ARGV[1]) then return { shownClock, 'set back' } end
if clock > tonumber(ARGV[2]) then return { shownClock, 'too late' } end
local first = takeSequence(KEYS[1], clock, tonumber(ARGV[5]), (#ARGV - 6) / 4)
if not first then return { shownClock, 'too far ahead' } end
local sequence = first
for place = 7, #ARGV, 4 do
  local job = ARGV[3] .. ARGV[place]
  if redis.call('EXISTS', job) == 0 then
    local start = '{"version":' .. ARGV[6] .. ',"sequence":' .. string.format('%.0f', sequence) .. ','
    redis.call('HSET', job, 'name', ARGV[place + 1], 'subject', ARGV[place + 2], 'data', start .. ARGV[place + 3],
      'opts', ARGV[4], 'timestamp', ARGV[5], 'delay', '0', 'priority', '0')
    redis.call('LPUSH', KEYS[2], ARGV[place])
  end
  sequence = sequence + 1
end
local paused, concurrency = unpack(redis.call('HMGET', KEYS[4], 'paused', 'concurrency'))
if not paused and not (concurrency and redis.call('LLEN', KEYS[3]) >= tonumber(concurrency)) then
  redis.call('ZADD', KEYS[5], '0', '0')
end
return { shownClock, string.format('%.0f', first) }
`);

type AddScriptAnswer = [clock: string, firstOrWhyNot: string];

/** @param clock learns from each answer what Redis' clock shows */
export function createEventAdder(redis: Redis, prefix: string, clock: RedisClock = createRedisClock(redis)): AddEvents {
  const queueKey = (name: string) => `${prefix}:${queueName}:${name}`;
  const keys = [sequenceKey(prefix), ...["wait", "active", "meta", "marker"].map(queueKey)];
  const options = JSON.stringify(jobOptions);

  return async function addEvents(events, deadlineMs) {
    const aheadMs = await clock.aheadMs();
    const startedAtMs = performance.now();
    const [shownClock, firstOrWhyNot] = await runScript<AddScriptAnswer>(redis, addScript, keys, [
      Math.round((startedAtMs - clockPrecisionMs + aheadMs) * 1_000),
      Math.round((deadlineMs + aheadMs) * 1_000),
      queueKey(""),
      options,
      Date.now(),
      envelopeVersion,
      ...events.flat(),
    ]);
    const isOutOfTime = firstOrWhyNot === "too late" || firstOrWhyNot === "set back";
    if (isOutOfTime || performance.now() - startedAtMs < clockPrecisionMs) clock.learn(Number(shownClock) / 1_000);
    if (firstOrWhyNot === "too late") throw new Error("Redis got to the events too late.");
    if (firstOrWhyNot === "set back") throw new Error("Redis' clock was set back while the events were on their way.");
    if (firstOrWhyNot === "too far ahead") throw new SequenceTooFarAhead("The events' place would be in the future.");
    return events.map((_, index) => Number(firstOrWhyNot) + index);
  };
}
