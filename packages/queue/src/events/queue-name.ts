/**
 * The name of each BullMQ queue. Its Redis keys are `<prefix>:events:…`; each shard has a prefix of its own.
 */
export const queueName = "events";

/**
 * A job's name is its event's kind, or this name if an operator put the event back. The worker then resolves its dead
 * letter.
 */
export const replayJobName = "replay";

/**
 * The name of the sorted set of the events that had to be delivered again and are still in the queue, in whatever state.
 * An event's score is when it was queued, in epoch milliseconds.
 */
export const retryingName = "retrying";

/** @returns a function that returns the key in Redis of a list of BullMQ's, or of the job with an id */
export function queueKeys(prefix: string): (name: string) => string {
  return (name) => `${prefix}:${queueName}:${name}`;
}
