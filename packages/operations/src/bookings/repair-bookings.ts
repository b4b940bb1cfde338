import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { openKey } from "../services/digest-key.ts";
import { readDuplicateWindowMs } from "../services/worker-rules.ts";
import { keysOf } from "./booking-keys.ts";
import { type Repair, repairBooking } from "./repair-booking.ts";
import { requireAny, requireBookings } from "./require-bookings.ts";
import { type BookingFilter, maxTold, verifyAll } from "./verify-bookings.ts";

export interface RepairSum {
  /** How many bookings were compared. */
  bookings: number;
  /** How many of them are repaired, or would be. */
  repaired: number;
  /** How many can't be. */
  refused: number;
  /** The first of both. */
  repairs: Repair[];
}

/**
 * Folds the events in the log again, and stores what the fold says where it differs. Each booking is repaired in a
 * transaction of its own.
 *
 * @throws OperationFailure if there is no such booking
 */
export async function repairBookings(context: ActingContext, filter: BookingFilter): Promise<RepairSum> {
  const { partner, reference } = filter;
  if (partner !== undefined) await withDatabase(context, (pool) => requireBookings(pool, partner));
  // A reference may name the guest. The id of a booking does not.
  const action = { command: "bookings repair", arguments: { partner, all: reference === undefined } };
  const sum = await recordAction(context, action, (record) => {
    const did = { bookings: 0, bookingIds: [] as string[] };
    record.did = did;
    return repairEach(context, filter, {
      isDryRun: false,
      onRepaired({ bookingId }) {
        did.bookings += 1;
        if (did.bookings <= maxTold) did.bookingIds.push(bookingId);
      },
    });
  });
  return requireAny(sum, filter);
}

/** Tells what a repair would do. */
export async function planRepairs(context: Context, filter: BookingFilter): Promise<RepairSum> {
  return requireAny(await repairEach(context, filter, { isDryRun: true, onRepaired: () => {} }), filter);
}

async function repairEach(
  context: Context,
  filter: BookingFilter,
  { isDryRun, onRepaired }: { isDryRun: boolean; onRepaired: (repair: Repair) => void },
): Promise<RepairSum> {
  const sum: RepairSum = { bookings: 0, repaired: 0, refused: 0, repairs: [] };
  await withDatabase(context, async (pool) => {
    const options = {
      duplicateWindowMs: await readDuplicateWindowMs(context),
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
      if (repair === null) continue;
      if (sum.repairs.length < maxTold) sum.repairs.push(repair);
      if (repair.refused === null) {
        sum.repaired += 1;
        onRepaired(repair);
      } else sum.refused += 1;
    }
  });
  return sum;
}
