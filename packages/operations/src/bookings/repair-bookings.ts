import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { openKey } from "../services/digest-key.ts";
import { keysOf } from "./booking-keys.ts";
import { type Repair, repairBooking } from "./repair-booking.ts";
import { type BookingFilter, readDuplicateWindowMs, verifyAll } from "./verify-bookings.ts";

export interface RepairSum {
  /** How many bookings were compared. */
  bookings: number;
  repairs: Repair[];
}

/**
 * Folds the events in the log again, and stores what the fold says where it differs. Each booking is repaired in a
 * transaction of its own.
 *
 * @throws OperationFailure if there is no such booking
 */
export async function repairBookings(
  context: Context,
  filter: BookingFilter,
  { isDryRun }: { isDryRun: boolean },
): Promise<RepairSum> {
  const sum: RepairSum = { bookings: 0, repairs: [] };
  await withDatabase(context, async (pool) => {
    const options = {
      duplicateWindowMs: readDuplicateWindowMs(context),
      isDryRun,
      digestKey: await openKey(context, pool),
    };
    for await (const { differences, ...booking } of verifyAll(context, filter)) {
      sum.bookings += 1;
      if (differences.length === 0) continue;
      const { partner, referenceKind, reference } = booking;
      const [key = Buffer.alloc(0)] = keysOf(partner, reference, referenceKind);
      // Compared again, under the booking's lock.
      const repair = await repairBooking(pool, key, options);
      if (repair !== null) sum.repairs.push(repair);
    }
  });
  if (filter.reference !== undefined && sum.bookings === 0)
    throw new OperationFailure(`Partner ${filter.partner} has no booking ${filter.reference}.`);
  return sum;
}
