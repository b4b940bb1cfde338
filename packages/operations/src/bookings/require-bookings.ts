import type { Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/**
 * A name that was mistyped must not look like a partner with whose bookings all is well. And what is no partner's id is
 * not recorded: it may be a guest's reference.
 *
 * @throws OperationFailure if the partner has no bookings
 */
export async function requireBookings(pool: Pool, partner: string): Promise<void> {
  const { rowCount } = await pool.query("select from bookings where partner = $1 limit 1", [partner]);
  if (rowCount === 0) throw noBookings(partner);
}

/** @throws OperationFailure if none of a partner's bookings was found */
export function requireAny<Sum extends { bookings: number }>(
  sum: Sum,
  { partner, reference }: { partner: string | undefined; reference: string | undefined },
): Sum {
  if (partner === undefined || sum.bookings > 0) return sum;
  throw reference === undefined
    ? noBookings(partner)
    : new OperationFailure(`Partner ${partner} has no booking ${reference}.`);
}

function noBookings(partner: string): OperationFailure {
  return new OperationFailure(`Partner ${partner} has no bookings. See which partners there are: ops partners list`);
}
