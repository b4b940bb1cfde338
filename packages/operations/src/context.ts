import type { createPool } from "@booking-events/store";

export type Pool = ReturnType<typeof createPool>;

/** What operations work with. */
export interface Context {
  /** Names the services and files: see docs/operations/variables.md. Each operation reads what it needs. */
  environment: Record<string, string | undefined>;
  now: () => Date;
  /**
   * Of connections to the database, for bookings of test partners or for all others. It is created when it is needed
   * first.
   */
  pool: (isTest: boolean | undefined) => Pool;
  /** What is read and changed are the bookings and events of test partners. Default: those of all others. */
  isTest?: boolean | undefined;
  /** Tells the operator something besides the result: a warning, or what is waited for. One or more sentences. */
  notify: (sentences: string) => void;
}

/** Does the same for the bookings of test partners as for all others, which come first. */
export async function inBoth<Result, Given extends Context>(
  context: Given,
  work: (context: Given) => Promise<Result>,
): Promise<Result[]> {
  return [await work({ ...context, isTest: false }), await work({ ...context, isTest: true })];
}
