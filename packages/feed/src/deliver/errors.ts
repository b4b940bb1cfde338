const longestPauseMs = 60 * 60_000;

/**
 * Thrown by a handler: the consumer asks to be left alone. Nothing is handed to it before the time is over, and the
 * booking loses no attempt.
 */
export class RetryAfter extends Error {
  override name = "RetryAfter";
  /** At most an hour. */
  readonly pauseMs: number;

  constructor(pauseMs: number) {
    super(`The consumer asked for a pause of ${pauseMs} ms.`);
    this.pauseMs = Math.min(Math.max(pauseMs, 0), longestPauseMs);
  }
}

/** Thrown by a handler: nothing is to be handed to this consumer any more. The booking loses no attempt. */
export class StopDelivering extends Error {
  override name = "StopDelivering";
  readonly reason: string;

  constructor(reason: string) {
    super(`The consumer has stopped: ${reason}`);
    this.reason = reason;
  }
}
