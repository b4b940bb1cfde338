import type { Logger } from "@booking-events/runtime";

export interface DurabilityWatch {
  /** Why PostgreSQL may lose committed events, in sentences for an operator. Empty: it does not. */
  problems(): string[];
  /**
   * Looks once. The worker calls this every {@link durabilityIntervalMs}.
   *
   * @throws if PostgreSQL does not answer, which is reported elsewhere
   */
  look(): Promise<void>;
}

export const durabilityIntervalMs = 5_000;

/**
 * Reports in the log and in `/readyz` that PostgreSQL may lose committed data. The worker goes on. Events that it
 * applied before are at the same risk, and if it stopped, the backlog would grow until ingest refuses events.
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
      else options.logger.info("PostgreSQL keeps committed data again");
    },
  };
}
