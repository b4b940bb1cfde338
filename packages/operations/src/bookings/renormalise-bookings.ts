import { type Renormalised, renormaliseBookings as renormalise } from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { openKey } from "../services/digest-key.ts";
import { requireKnown } from "../services/partners-file.ts";

/** Reads the contents of bookings again, and writes the columns that differ. Tells each page to `count`. */
export async function renormaliseBookings(
  context: ActingContext,
  { partner }: { partner: string | undefined },
  count: (page: Renormalised) => void,
): Promise<void> {
  let bookings = 0;
  await recordAction(context, { command: "bookings renormalise", arguments: { partner } }, (record) => {
    let changed = 0;
    return readAgain(context, { partner, isDryRun: false }, (page) => {
      bookings += page.bookings;
      changed += page.changed;
      record.did = { bookings: changed };
      count(page);
    });
  });
  requireKnown(context, partner, { length: bookings });
}

/** Only counts what differs. */
export async function countDifferences(
  context: Context,
  { partner }: { partner: string | undefined },
  count: (page: Renormalised) => void,
): Promise<void> {
  let bookings = 0;
  await readAgain(context, { partner, isDryRun: true }, (page) => {
    bookings += page.bookings;
    count(page);
  });
  requireKnown(context, partner, { length: bookings });
}

function readAgain(
  context: Context,
  options: { partner: string | undefined; isDryRun: boolean },
  count: (page: Renormalised) => void,
): Promise<void> {
  return withDatabase(context, async (pool) => {
    const key = await openKey(context, pool);
    for await (const page of renormalise(pool, key, options)) count(page);
  });
}
