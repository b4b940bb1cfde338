import { escapeIdentifier } from "pg";
import { withOwnConnection } from "../connect/own-connection.ts";

const tables = ["bookings", "booking_events", "booking_changes", "dead_letters"];
/** While this waits for a table, all later queries of the table wait too. */
const lockTimeoutMs = 10_000;

/**
 * Rewrites the tables that hold guests' data, with their indexes and statistics. Afterwards PostgreSQL's files hold
 * nothing of deleted or updated rows, except for its WAL. Each table is locked while it is rewritten.
 *
 * @returns the tables that the user may not rewrite
 * @throws what PostgreSQL throws, such as 55P03 if a table stays locked for 10 s
 */
export function rewriteTables(database: { databaseUrl: string; schema: string }): Promise<string[]> {
  return withOwnConnection(database.databaseUrl, "booking-events-ops", async (client) => {
    const refused = new Set<string>();
    await client.query(`set lock_timeout to ${lockTimeoutMs}; set statement_timeout to 0`);
    for (const table of tables) {
      // PostgreSQL skips a table of another owner with a warning (42501).
      const note = ({ code }: { code: string | undefined }) => {
        if (code === "42501") refused.add(`${database.schema}.${table}`);
      };
      client.on("notice", note);
      await client.query(`vacuum (full, analyze) ${escapeIdentifier(database.schema)}.${table}`);
      client.off("notice", note);
    }
    return [...refused];
  });
}
