import { withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { SequenceCheck } from "../events/sequence.ts";
import type { RedisClock } from "../redis/clock.ts";
import { findDurabilityProblems, findRunWithCompleteAof, readRedisFacts } from "../redis/durability.ts";
import { type ConfirmedWrites, enqueueDeadlineMs } from "./confirmed-writes.ts";

const disputed =
  "Most Sentinels do not confirm that this Redis is the primary. Check that they run, and wait for a failover to end.";

interface SafetyCheckParts {
  redis: Redis;
  prefix: string;
  replicasToConfirm: number;
  clock: RedisClock;
  writes: ConfirmedWrites;
  describeOutage: () => string;
}

/** Checks whether Redis can store events safely, and remembers what one check tells the next. */
export class SafetyCheck {
  readonly #parts: SafetyCheckParts;
  readonly #sequence = new SequenceCheck();
  #isDurable = true;
  /** The id of the Redis process whose append-only file is known to be complete. */
  #runWithCompleteAof: string | undefined;

  constructor(parts: SafetyCheckParts) {
    this.#parts = parts;
  }

  /** Whether the last check of all of Redis' settings found that it keeps what it confirms. */
  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** As `findProblems` of a producer. */
  async findProblems(): Promise<string[]> {
    const { redis, prefix, replicasToConfirm, clock, writes, describeOutage } = this.#parts;
    try {
      const checks = Promise.all([
        readRedisFacts(redis),
        this.#sequence.findProblems(redis, prefix, clock),
        writes.canConfirm(),
      ]);
      const [facts, sequenceProblems, canConfirm] = await withDeadline(checks, enqueueDeadlineMs);
      const problems = findDurabilityProblems(facts, {
        runWithCompleteAof: this.#runWithCompleteAof,
        replicasToConfirm,
      });
      this.#isDurable = problems.length === 0;
      this.#runWithCompleteAof = findRunWithCompleteAof(facts, this.#runWithCompleteAof);
      return [...problems, ...(canConfirm ? [] : [disputed]), ...sequenceProblems];
    } catch {
      return [describeOutage()];
    }
  }
}
