import { withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { SequenceCheck } from "../events/sequence.ts";
import type { RedisClock } from "../redis/clock.ts";
import { findDurabilityProblems, findRunWithCompleteAof, readRedisFacts } from "../redis/durability.ts";
import { type ConfirmedWrites, enqueueDeadlineMs } from "./confirmed-writes.ts";

const disputed =
  "Most Sentinels do not confirm that this Redis is the primary. Check that they run, and wait for a failover to end.";

/** Checks whether Redis can store events safely, and remembers what one check tells the next. */
export class SafetyCheck {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #replicasToConfirm: number;
  readonly #clock: RedisClock;
  readonly #writes: ConfirmedWrites;
  readonly #describeOutage: () => string;
  readonly #sequence = new SequenceCheck();
  #isDurable = true;
  /** The id of the Redis process whose append-only file is known to be complete. */
  #runWithCompleteAof: string | undefined;

  constructor(options: {
    redis: Redis;
    prefix: string;
    replicasToConfirm: number;
    clock: RedisClock;
    writes: ConfirmedWrites;
    describeOutage: () => string;
  }) {
    this.#redis = options.redis;
    this.#prefix = options.prefix;
    this.#replicasToConfirm = options.replicasToConfirm;
    this.#clock = options.clock;
    this.#writes = options.writes;
    this.#describeOutage = options.describeOutage;
  }

  /** Whether the last check of all of Redis' settings found that it keeps what it confirms. */
  get isDurable(): boolean {
    return this.#isDurable;
  }

  /**
   * Finds reasons why Redis cannot be reached or cannot store events safely, as sentences for an operator. Empty if
   * there are none. Never throws, and answers within {@link enqueueDeadlineMs}.
   */
  async findProblems(): Promise<string[]> {
    try {
      const checks = Promise.all([
        readRedisFacts(this.#redis),
        this.#sequence.findProblems(this.#redis, this.#prefix, this.#clock),
        this.#writes.canConfirm(),
      ]);
      const [facts, sequenceProblems, canConfirm] = await withDeadline(checks, enqueueDeadlineMs);
      const problems = findDurabilityProblems(facts, {
        runWithCompleteAof: this.#runWithCompleteAof,
        replicasToConfirm: this.#replicasToConfirm,
      });
      this.#isDurable = problems.length === 0;
      this.#runWithCompleteAof = findRunWithCompleteAof(facts, this.#runWithCompleteAof);
      return [...problems, ...(canConfirm ? [] : [disputed]), ...sequenceProblems];
    } catch {
      return [this.#describeOutage()];
    }
  }
}
