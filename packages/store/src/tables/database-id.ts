import type { Queryable } from "../connect/queryable.ts";
import { safeMessage } from "../connect/safe-message.ts";

/** By what the queue knows a database. */
export interface DatabaseIdentity {
  id: string;
  /** Whether no event has ever been applied to it. */
  isEmpty: boolean;
}

export async function readDatabaseIdentity(client: Queryable): Promise<DatabaseIdentity> {
  const { rows } = await client.query<DatabaseIdentity>(
    `select id, not exists (select from bookings) and not exists (select from booking_events) as "isEmpty"
     from database_id`,
  );
  if (rows[0] === undefined) throw new Error("The table database_id has no row. Restore it from a backup.");
  return rows[0];
}

/**
 * Checks that a connection leads to this database. Another server may have taken the place of the one to which earlier
 * connections led, such as one that was started with another volume.
 *
 * @throws OtherDatabase
 */
export async function requireDatabase(client: Queryable, expected: string): Promise<void> {
  const { rows } = await client.query<{ id: string }>("select id from database_id");
  checkDatabase(rows[0]?.id, expected);
}

/** @throws OtherDatabase */
export function checkDatabase(found: string | null | undefined, expected: string): void {
  if (found !== expected) throw new OtherDatabase(expected, found);
}

export const otherDatabaseCode = "OTHER_DATABASE";

/** The server has another database than when the process started. */
export class OtherDatabase extends Error {
  override name = "OtherDatabase";
  readonly code = otherDatabaseCode;
  readonly [safeMessage] = true;

  constructor(expected: string, found: string | null | undefined) {
    super(
      `PostgreSQL had the database ${expected} when this process started, and now has ${found ?? "none"}: correct the ` +
        "server or its volume, or, if this database is right, restart the process.",
    );
  }
}
