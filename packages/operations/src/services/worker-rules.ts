import { parseEnvironment, variables } from "@booking-events/runtime";
import { readWorkerRules as readRecorded, type WorkerRules } from "@booking-events/store";
import type { Context } from "../context.ts";
import { withDatabase } from "./database.ts";

/**
 * Returns the settings that the workers have recorded. Only if none has, those of this process count: by other ones than
 * the workers', it would remove what they keep, or take right bookings for wrong.
 */
export async function readWorkerRules(context: Context): Promise<WorkerRules> {
  // They are recorded once, for the bookings of test partners too.
  const recorded = await withDatabase({ ...context, isTest: false }, readRecorded);
  if (recorded !== null) return recorded;
  const { DUPLICATE_WINDOW_HOURS, RETENTION_DAYS, DELETED_RETENTION_DAYS, DEAD_LETTER_RETENTION_DAYS } = variables;
  const own = parseEnvironment(
    { DUPLICATE_WINDOW_HOURS, RETENTION_DAYS, DELETED_RETENTION_DAYS, DEAD_LETTER_RETENTION_DAYS },
    context.environment,
  );
  return {
    retention: {
      retentionDays: own.RETENTION_DAYS,
      deletedRetentionDays: own.DELETED_RETENTION_DAYS,
      deadLetterRetentionDays: own.DEAD_LETTER_RETENTION_DAYS,
    },
    duplicateWindowHours: own.DUPLICATE_WINDOW_HOURS,
  };
}

const msPerHour = 60 * 60 * 1_000;

export async function readDuplicateWindowMs(context: Context): Promise<number> {
  return (await readWorkerRules(context)).duplicateWindowHours * msPerHour;
}
