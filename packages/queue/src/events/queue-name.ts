/**
 * The name of each BullMQ queue. Its Redis keys are `<prefix>:events:…`; each shard has a prefix of its own.
 */
export const queueName = "events";

/**
 * A job's name is its event's kind, or this name if an operator put the event back. The worker then resolves its dead
 * letter.
 */
export const replayJobName = "replay";
