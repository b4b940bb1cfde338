import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "../tables.ts";

/**
 * Reads which bookings there are, in the order of their ids. Those that are deleted or erased are among them: whoever starts
 * over may have a copy.
 */
export async function readSnapshotPage(
  client: Queryable,
  { bookings }: FeedTables,
  { after, limit, partners }: { after: string; limit: number; partners: string[] | null },
): Promise<{ bookingIds: string[]; upTo: string; isLast: boolean }> {
  const { rows } = await client.query<{ id: string; isWanted: boolean }>(
    `select booking_id as id, revision > 0 and ($3::text[] is null or partner = any($3)) as "isWanted"
     from ${bookings} where booking_id > $1 order by booking_id limit $2`,
    [after, limit, partners],
  );
  return {
    bookingIds: rows.flatMap(({ id, isWanted }) => (isWanted ? [id] : [])),
    upTo: rows.at(-1)?.id ?? after,
    isLast: rows.length < limit,
  };
}
