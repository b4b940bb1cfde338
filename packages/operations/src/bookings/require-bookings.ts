import type { Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/**
 * A name that was mistyped must not look like a partner with whose bookings all is well. And what is no partner's id is not
 * recorded: it may be a guest's reference.
 *
 * @throws OperationFailure if the partner has no bookings
 */
export async function requireBookings(pool: Pool, partner: string): Promise<void> {
  const { rowCount } = await pool.query("select from bookings where partner = $1 limit 1", [partner]);
  if (rowCount === 0)
    throw new OperationFailure(`Partner ${partner} has no bookings. See which partners there are: ops partners list`);
}
