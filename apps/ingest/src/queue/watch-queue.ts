import { setTimeout as wait } from "node:timers/promises";
import type { Producer } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";

export interface QueueWatch {
  /** Why the queue cannot store events safely, for an operator. Empty if it can, as far as known. */
  problems(): string[];
  /**
   * Runs work that sends an event to Redis.
   *
   * @throws QueueUnavailable if the queue has problems, or if the checked connection was replaced before the work was
   *   done; what `work` throws
   */
  runWhileAvailable<Result>(work: () => Promise<Result>): Promise<Result>;
  stop(): void;
}

/** The event may be in no Redis, or in one that could lose it. */
class QueueUnavailable extends Error {
  override name = "QueueUnavailable";
}

/** What a check found over a connection. */
interface CheckResult {
  connection: number;
  problems: string[];
}

const checkIntervalMs = 1_000;
/** Shorter while there is a problem, because partners wait for the next check. */
const recheckIntervalMs = 250;
/** A new connection takes a moment. Until then a check would report that Redis does not answer. */
const connectMs = 1_500;
const connectCheckIntervalMs = 20;

const uncheckedConnection = "The connection to Redis is new and has not been checked yet.";

/**
 * Checks every second, and on each new connection, whether Redis answers and stores events safely, so requests need no
 * check of their own. While it does not, events are refused immediately, because Redis might accept one and lose it.
 * Resolves after the first check.
 */
export async function watchQueue(options: {
  producer: Pick<Producer, "findProblems" | "connectionNumber" | "onConnected">;
  logger: Logger;
}): Promise<QueueWatch> {
  const { producer, logger } = options;
  const stopping = new AbortController();
  let problems: string[] = [];
  let checkedConnection: number | undefined;

  async function check(): Promise<CheckResult> {
    return { connection: producer.connectionNumber(), problems: await producer.findProblems() };
  }

  async function checkFirst(): Promise<void> {
    const endAtMs = Date.now() + connectMs;
    let result = await check();
    while (result.problems.length > 0 && Date.now() < endAtMs) {
      await wait(connectCheckIntervalMs);
      result = await check();
    }
    update(result);
  }

  function update(result: CheckResult): void {
    // A connection that has replaced the checked one gets its own check.
    if (result.connection !== producer.connectionNumber() || stopping.signal.aborted) return;
    if (result.problems.join() !== problems.join()) {
      if (result.problems.length > 0)
        logger.error({ problems: result.problems }, "queue unavailable: events are refused");
      else logger.info("queue available again");
    }
    problems = result.problems;
    checkedConnection = result.connection;
  }

  async function keepChecking(): Promise<void> {
    while (!stopping.signal.aborted) {
      const intervalMs = currentProblems().length === 0 ? checkIntervalMs : recheckIntervalMs;
      await wait(intervalMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (!stopping.signal.aborted) update(await check());
    }
  }

  function currentProblems(): string[] {
    const isChecked = checkedConnection === producer.connectionNumber();
    return problems.length > 0 || isChecked ? problems : [uncheckedConnection];
  }

  function requireAvailable(): void {
    if (currentProblems().length > 0) throw new QueueUnavailable("Redis could lose the event.");
  }

  await checkFirst();
  producer.onConnected(() => void check().then(update));
  void keepChecking();
  return {
    problems: currentProblems,
    async runWhileAvailable(work) {
      requireAvailable();
      const connection = checkedConnection;
      const result = await work();
      // When its connection breaks, the client sends a command again, so the reply may come from another Redis.
      requireAvailable();
      if (connection !== checkedConnection) throw new QueueUnavailable("The connection was replaced in the meantime.");
      return result;
    },
    stop: () => stopping.abort(),
  };
}
