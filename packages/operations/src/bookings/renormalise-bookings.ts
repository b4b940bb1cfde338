import { type Renormalised, renormaliseBookings as renormalise } from "@booking-events/store";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { openKey } from "../services/digest-key.ts";

/** Reads the contents of bookings again, and writes the columns that differ. Tells each page to `count`. */
export function renormaliseBookings(
  context: Context,
  options: { partner: string | undefined; isDryRun: boolean },
  count: (page: Renormalised) => void,
): Promise<void> {
  return withDatabase(context, async (pool) => {
    const key = await openKey(context, pool);
    for await (const page of renormalise(pool, key, options)) count(page);
  });
}
