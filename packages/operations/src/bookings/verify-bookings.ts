import type { ReferenceKind } from "@booking-events/schema";
import { readBookings, readLogHorizon } from "@booking-events/store";
import type { Context } from "../context.ts";
import { readDatabase, readPrepared } from "../services/database.ts";
import { readDuplicateWindowMs } from "../services/worker-rules.ts";
import { keysOf } from "./booking-keys.ts";
import { requireAny } from "./require-bookings.ts";
import { type Verification, verifyTogether } from "./verify-booking.ts";

const bookingsReadTogether = 200;

/** Which bookings are meant. All undefined: all. */
export interface BookingFilter {
  partner: string | undefined;
  /** With a partner only. */
  reference: string | undefined;
  /** Undefined: either. */
  referenceKind: ReferenceKind | undefined;
}

export interface VerificationSum {
  bookings: number;
  events: number;
  /** How many bookings began before the log, and were compared from there. */
  olderThanLog: number;
  /** How many bookings differ. */
  differing: number;
  /** The first of them, up to {@link maxTold}. */
  different: Verification[];
}

/** More bookings are only counted. After a bad release, each of a million may differ. */
export const maxTold = 1_000;

/**
 * Compares bookings with their events in the log.
 *
 * @throws OperationFailure if there is no such booking
 */
export async function verifyBookings(context: Context, filter: BookingFilter): Promise<VerificationSum> {
  const sum: VerificationSum = { bookings: 0, events: 0, olderThanLog: 0, differing: 0, different: [] };
  for await (const verification of verifyAll(context, filter)) {
    sum.bookings += 1;
    sum.events += verification.events;
    if (verification.isOlderThanLog) sum.olderThanLog += 1;
    if (verification.differences.length === 0) continue;
    sum.differing += 1;
    if (sum.differing <= maxTold) sum.different.push(verification);
  }
  return requireAny(sum, filter);
}

/** Each booking is compared with its log in one snapshot of the database. */
export async function* verifyAll(
  context: Context,
  { partner, reference, referenceKind }: BookingFilter,
): AsyncGenerator<Verification> {
  const bookingKeys =
    reference === undefined || partner === undefined ? undefined : keysOf(partner, reference, referenceKind);
  const duplicateWindowMs = await readDuplicateWindowMs(context);
  // Which index is best for all bookings of a partner depends on how many it has, so that is planned for each page.
  const read = bookingKeys === undefined ? readDatabase : readPrepared;
  let after: Buffer | undefined;
  do {
    const page = await read(context, async (client) => {
      const bookings = await readBookings(client, { partner, bookingKeys, after, limit: bookingsReadTogether });
      const options = { duplicateWindowMs, horizon: await readLogHorizon(client) };
      const verified = await verifyTogether(client, bookings, options);
      return { bookings, verifications: verified.map(({ verification }) => verification) };
    });
    yield* page.verifications;
    after = page.bookings.length < bookingsReadTogether ? undefined : page.bookings.at(-1)?.bookingKey;
  } while (after !== undefined);
}
