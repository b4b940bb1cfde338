import { ClockComparison, type ServerTime } from "./compare-clocks.ts";
import type { Logger } from "./logger.ts";
import { Gauge, type Registry } from "./metrics.ts";
import { isHostClockWrong, ServerClock } from "./server-clock.ts";
import { withDeadline } from "./with-deadline.ts";

const answerLimitMs = 2_000;

/** Compares PostgreSQL's clock, Redis' and this host's, and logs when one begins or ends to differ too much. */
export class ClockWatch {
  readonly #readRedis: () => Promise<ServerTime>[];
  readonly #readDatabase: () => Promise<ServerTime>;
  readonly #logger: Logger;
  readonly #comparison = new ClockComparison();
  readonly #databaseAhead: Gauge;
  #servers: ServerClock[] = [];
  #problem: string | null = null;

  constructor(options: {
    /** Asks the Redis of each shard. */
    readRedis: () => Promise<ServerTime>[];
    readDatabase: () => Promise<ServerTime>;
    metrics: Registry;
    logger: Logger;
  }) {
    this.#readRedis = options.readRedis;
    this.#readDatabase = options.readDatabase;
    this.#logger = options.logger;
    this.#databaseAhead = new Gauge({
      name: "booking_events_database_clock_ahead_seconds",
      help: "How far PostgreSQL's clock is ahead of that of this process.",
      registers: [options.metrics],
    });
  }

  /** Which clock is wrong, as far as known, in a sentence for an operator. Empty: none. */
  problems(): string[] {
    return this.#problem === null ? [] : [this.#problem];
  }

  /** Whether this host's clock is the wrong one. */
  isHostWrong(): boolean {
    return this.#comparison.isHostWrong;
  }

  /** Whether this host's clock is known to differ too much from all others. */
  differsFromServers(): boolean {
    return isHostClockWrong(this.#servers);
  }

  /**
   * Compares the clocks of all servers that answer. An outage of one shard must not hide a clock that is wrong.
   *
   * @throws if PostgreSQL or no Redis answers, which is reported elsewhere
   */
  async look(): Promise<void> {
    const postgresql = await this.#readDatabase();
    this.#databaseAhead.set(postgresql.clockAheadMs / 1_000);
    const answers = await Promise.allSettled(this.#askRedis());
    const redis = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    if (redis.length === 0) throw new Error("No Redis answers.");
    this.#compare(postgresql, redis);
  }

  /** Returns why no clock can be trusted now, in a sentence for an operator; null: all agree. */
  async findProblem(postgresql: ServerTime): Promise<string | null> {
    try {
      return this.#compare(postgresql, await Promise.all(this.#askRedis()));
    } catch {
      return "Redis does not answer, so its clock cannot be compared. Check that it runs.";
    }
  }

  #askRedis(): Promise<ServerTime>[] {
    return this.#readRedis().map((time) => withDeadline(time, answerLimitMs));
  }

  #compare(postgresql: ServerTime, redis: ServerTime[]): string | null {
    this.#servers = [postgresql, ...redis].map(({ clockAheadMs }) => new ServerClock(Date.now() + clockAheadMs));
    const problem = this.#comparison.findProblem({ postgresql, redis });
    if (problem !== this.#problem) {
      if (problem === null) this.#logger.info("the clocks agree again");
      else this.#logger.error({ problem }, "clocks differ");
    }
    this.#problem = problem;
    return problem;
  }
}
