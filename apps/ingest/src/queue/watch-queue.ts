import { setTimeout as wait } from "node:timers/promises";
import type { Producer } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";

export interface QueueWatch {
  /** What keeps the queue from holding events safely, for an operator: at the last look, or since. Empty: nothing. */
  problems(): string[];
  /**
   * Runs work that gives Redis an event.
   *
   * @throws UnknownRedis when the queue has problems, or when the connection on which they were looked for was replaced
   *   before the work was done; what `work` throws
   */
  runOnFitRedis<Result>(work: () => Promise<Result>): Promise<Result>;
  stop(): void;
}

/** What has the event, if anything has, may be a Redis that loses it. */
class UnknownRedis extends Error {
  override name = "UnknownRedis";
}

const lookIntervalMs = 1_000;
/** While there is a problem, partners wait for the next look. */
const lookAgainIntervalMs = 250;
/** A connection that has just been opened takes a moment; until then Redis would be said not to answer. */
const connectMs = 1_500;
const connectCheckIntervalMs = 20;

const notLookedAt = "The connection to Redis is new, and was not looked at yet.";

/**
 * Looks every second, and on each new connection, whether Redis answers and keeps what it is given, so that a request
 * needs no look of its own. While it does not, an event is refused at once: Redis might accept it, and lose it. Resolves
 * when it knows, well or not.
 */
export async function watchQueue(options: {
  producer: Pick<Producer, "findProblems" | "connectionNumber" | "onConnected">;
  logger: Logger;
}): Promise<QueueWatch> {
  const { producer, logger } = options;
  const stopping = new AbortController();
  let problems: string[] = [];
  /** The connection of the last look. */
  let connectionSeen: number | undefined;

  async function look(): Promise<{ connection: number; found: string[] }> {
    return { connection: producer.connectionNumber(), found: await producer.findProblems() };
  }

  async function lookFirst(): Promise<void> {
    const endAtMs = Date.now() + connectMs;
    let seen = await look();
    while (seen.found.length > 0 && Date.now() < endAtMs) {
      await wait(connectCheckIntervalMs);
      seen = await look();
    }
    take(seen);
  }

  function take({ connection, found }: { connection: number; found: string[] }): void {
    // The connection that has taken its place has a look of its own.
    if (connection !== producer.connectionNumber() || stopping.signal.aborted) return;
    if (found.join() !== problems.join()) {
      if (found.length > 0) logger.error({ problems: found }, "queue unavailable: events are refused");
      else logger.info("queue available again");
    }
    problems = found;
    connectionSeen = connection;
  }

  async function keepLooking(): Promise<void> {
    while (!stopping.signal.aborted) {
      const intervalMs = currentProblems().length === 0 ? lookIntervalMs : lookAgainIntervalMs;
      await wait(intervalMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (!stopping.signal.aborted) take(await look());
    }
  }

  function currentProblems(): string[] {
    const isSeen = connectionSeen === producer.connectionNumber();
    return problems.length > 0 || isSeen ? problems : [notLookedAt];
  }

  function requireFitRedis(): void {
    if (currentProblems().length > 0) throw new UnknownRedis("Redis may lose what it is given.");
  }

  await lookFirst();
  producer.onConnected(() => void look().then(take));
  void keepLooking();
  return {
    problems: currentProblems,
    async runOnFitRedis(work) {
      requireFitRedis();
      const connection = connectionSeen;
      const result = await work();
      // The client sends a command again whose connection broke: the answer may be another Redis'.
      requireFitRedis();
      if (connection !== connectionSeen) throw new UnknownRedis("The connection was replaced meanwhile.");
      return result;
    },
    stop: () => stopping.abort(),
  };
}
