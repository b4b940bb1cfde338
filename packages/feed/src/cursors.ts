import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "./tables.ts";

export interface Cursor {
  name: string;
  tables: FeedTables;
}

/** @returns whether the feed ends where the cursor is; null: there is no such cursor */
export async function isAtEnd(client: Queryable, { name, tables }: Cursor): Promise<boolean | null> {
  const { rows } = await client.query<{ isAtEnd: boolean | null }>(
    `select feed_cursors.last_id = feed_position.last_id as "isAtEnd"
     from ${tables.position} left join ${tables.cursors} on name = $1`,
    [name],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("The table feed_position must have its row.");
  return row.isAtEnd;
}

/** Sets up the cursor before the oldest change that is kept, or after the newest. Does nothing if it exists. */
export async function createCursor(
  client: Queryable,
  { name, tables }: Cursor,
  at: "beginning" | "now",
): Promise<void> {
  const oldest = at === "beginning" ? `select min(id) - 1 from ${tables.changes}` : "select null::bigint";
  await client.query(
    `insert into ${tables.cursors} (name, last_id)
     select $1, coalesce((${oldest}), last_id) from ${tables.position}
     on conflict do nothing`,
    [name],
  );
}

/**
 * Locks the cursor until the transaction ends, so that one follower at a time is active.
 *
 * @returns the id of the last change that was dealt with; null: another follower has the lock
 */
export async function lockCursor(client: Queryable, { name, tables }: Cursor): Promise<number | null> {
  const { rows } = await client.query<{ lastId: number }>(
    `select last_id::float8 as "lastId" from ${tables.cursors} where name = $1 for update skip locked`,
    [name],
  );
  return rows[0]?.lastId ?? null;
}

export async function moveCursor(client: Queryable, { name, tables }: Cursor, lastId: number): Promise<void> {
  await client.query(`update ${tables.cursors} set last_id = $2, moved_at = now() where name = $1`, [name, lastId]);
}
