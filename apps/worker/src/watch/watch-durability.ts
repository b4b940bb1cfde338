import type { Logger } from "@booking-events/runtime";

export interface DurabilityWatch {
  /** What may lose events that PostgreSQL has committed, at the last look, for an operator. Empty: nothing. */
  problems(): string[];
  /**
   * Looks once; the worker calls it every {@link durabilityIntervalMs}.
   *
   * @throws when PostgreSQL does not say, which is told elsewhere
   */
  look(): Promise<void>;
}

export const durabilityIntervalMs = 5_000;

/**
 * Says, in the log and in `/readyz`, that PostgreSQL may lose what it has committed. The worker goes on: whatever was
 * applied before is at the same risk, and a backlog that nobody works off ends in refusals.
 */
export function watchDurability(options: { findProblems: () => Promise<string[]>; logger: Logger }): DurabilityWatch {
  let problems: string[] = [];
  return {
    problems: () => problems,
    async look() {
      const found = await options.findProblems();
      if (found.join() === problems.join()) return;
      problems = found;
      if (found.length > 0)
        options.logger.error({ problems: found }, "PostgreSQL may lose applied events in a crash of its machine");
      else options.logger.info("PostgreSQL keeps what it has committed again");
    },
  };
}
