import { setTimeout as wait } from "node:timers/promises";
import type { Producer } from "@booking-events/queue";
import type { Logger } from "@booking-events/service";

export interface QueueWatch {
  /** What kept the queue from holding events safely at the last look, for an operator. Empty: nothing. */
  problems(): string[];
  stop(): void;
}

const lookIntervalMs = 1_000;
/** While there is a problem, partners wait for the next look. */
const lookAgainIntervalMs = 250;
/** A connection that has just been opened takes a moment; until then Redis would be said not to answer. */
const connectMs = 1_500;
const connectCheckIntervalMs = 20;

/**
 * Looks every second whether Redis answers and keeps what it is given, so that a request needs no look of its own.
 * While it does not, an event is refused at once: Redis might accept it, and lose it. Resolves when it knows, well or not.
 */
export async function watchQueue(options: {
  findProblems: Producer["findProblems"];
  logger: Logger;
}): Promise<QueueWatch> {
  const { findProblems, logger } = options;
  const stopping = new AbortController();
  let problems: string[] = [];

  async function lookFirst(): Promise<void> {
    const endAtMs = Date.now() + connectMs;
    let found = await findProblems();
    while (found.length > 0 && Date.now() < endAtMs) {
      await wait(connectCheckIntervalMs);
      found = await findProblems();
    }
    take(found);
  }

  function take(found: string[]): void {
    if (found.join() !== problems.join()) {
      if (found.length > 0) logger.error({ problems: found }, "queue unavailable: events are refused");
      else logger.info("queue available again");
    }
    problems = found;
  }

  async function keepLooking(): Promise<void> {
    while (!stopping.signal.aborted) {
      const intervalMs = problems.length === 0 ? lookIntervalMs : lookAgainIntervalMs;
      await wait(intervalMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (!stopping.signal.aborted) take(await findProblems());
    }
  }

  await lookFirst();
  void keepLooking();
  return { problems: () => problems, stop: () => stopping.abort() };
}
