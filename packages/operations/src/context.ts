import type { createPool } from "@booking-events/store";

export type Pool = ReturnType<typeof createPool>;

/** What operations work with. */
export interface Context {
  /** Names the services and files: see docs/operations/variables.md. Each operation reads what it needs. */
  environment: Record<string, string | undefined>;
  now: () => Date;
  /** Of connections to the database. It is created when it is needed first. */
  pool: () => Pool;
  /** Tells the operator something besides the result: a warning, or what is waited for. One or more sentences. */
  notify: (sentences: string) => void;
}
