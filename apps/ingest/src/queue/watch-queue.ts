import { setTimeout as wait } from "node:timers/promises";
import type { Producer } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";

/** The event may be in no Redis, or in one that could lose it. */
class QueueUnavailable extends Error {
  override name = "QueueUnavailable";
}

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

type CheckedProducer = Pick<Producer, "findProblems" | "connectionNumber" | "onConnected">;

/**
 * Checks every second, and on each new connection, whether Redis answers and stores events safely, so requests need no
 * check of their own. While it does not, events are refused immediately, because Redis might accept one and lose it.
 */
export class QueueWatch {
  readonly #producer: CheckedProducer;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  #problems: string[] = [];
  #checkedConnection: number | undefined;

  constructor(producer: CheckedProducer, logger: Logger) {
    this.#producer = producer;
    this.#logger = logger;
  }

  /** Resolves after the first check. */
  async start(): Promise<void> {
    await this.#checkFirst();
    this.#producer.onConnected(() => void this.#check().then((result) => this.#update(result)));
    void this.#keepChecking();
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Why the queue cannot store events safely, for an operator. Empty if it can, as far as known. */
  problems(): string[] {
    const isChecked = this.#checkedConnection === this.#producer.connectionNumber();
    return this.#problems.length > 0 || isChecked ? this.#problems : [uncheckedConnection];
  }

  /**
   * Runs work that sends an event to Redis.
   *
   * @throws QueueUnavailable if the queue has problems, or if the checked connection was replaced before the work was
   *   done; what `work` throws
   */
  async runWhileAvailable<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#requireAvailable();
    const connection = this.#checkedConnection;
    const result = await work();
    // When its connection breaks, the client sends a command again, so the reply may come from another Redis.
    this.#requireAvailable();
    if (connection !== this.#checkedConnection)
      throw new QueueUnavailable("The connection was replaced in the meantime.");
    return result;
  }

  #requireAvailable(): void {
    if (this.problems().length > 0) throw new QueueUnavailable("Redis could lose the event.");
  }

  async #checkFirst(): Promise<void> {
    const endAtMs = Date.now() + connectMs;
    let result = await this.#check();
    while (result.problems.length > 0 && Date.now() < endAtMs) {
      await wait(connectCheckIntervalMs);
      result = await this.#check();
    }
    this.#update(result);
  }

  async #keepChecking(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const intervalMs = this.problems().length === 0 ? checkIntervalMs : recheckIntervalMs;
      await wait(intervalMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) this.#update(await this.#check());
    }
  }

  async #check(): Promise<CheckResult> {
    return { connection: this.#producer.connectionNumber(), problems: await this.#producer.findProblems() };
  }

  #update({ connection, problems }: CheckResult): void {
    // A connection that has replaced the checked one gets its own check.
    if (connection !== this.#producer.connectionNumber() || this.#stopping.signal.aborted) return;
    if (problems.join() !== this.#problems.join()) {
      if (problems.length > 0) this.#logger.error({ problems }, "queue unavailable: events are refused");
      else this.#logger.info("queue available again");
    }
    this.#problems = problems;
    this.#checkedConnection = connection;
  }
}
