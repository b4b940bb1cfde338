import pg from "pg";

const uniqueViolation = "23505";

/**
 * Rows that are known to be missing hardly ever appear meanwhile, and `on conflict` costs PostgreSQL another search and
 * a lock for each.
 *
 * @returns false if another transaction has inserted one of the rows. Nothing but a rollback is possible then
 */
export async function wasFirst(insertion: Promise<unknown>): Promise<boolean> {
  try {
    await insertion;
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === uniqueViolation) return false;
    throw error;
  }
}
