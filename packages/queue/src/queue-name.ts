/** The one BullMQ queue. Its Redis keys are `<prefix>:events:…`; a sharded deployment gives each shard a prefix. */
export const queueName = "events";

/** A job's name is its event's kind, or this for one that an operator has put back. The worker then closes its dead letter. */
export const replayJobName = "replay";
