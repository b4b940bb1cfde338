import type { Queryable } from "@booking-events/store";
import { ForeignReaderError } from "./errors.ts";
import { findBeginning, readPosition, requireWholeFeed } from "./feed-position.ts";
import type { FeedTables } from "./tables.ts";

export interface Reader {
  name: string;
  tables: FeedTables;
}

/** Where a reader is: `none`: there is no such reader; `reset`: it has to start over. */
export type ReaderPlace = "none" | "reset" | "behind" | "at-end";

/** @throws ForeignReaderError */
export async function findPlace(client: Queryable, { name, tables }: Reader): Promise<ReaderPlace> {
  const { rows } = await client.query<{ place: ReaderPlace; owner: string | null; role: string }>(
    `select reader.owner::text as owner, current_user::text as role,
       case
         when reader.name is null then 'none'
         when reader.last_id is null then 'reset'
         when reader.last_id = position.last_id then 'at-end'
         else 'behind'
       end as place
     from ${tables.position} as position left join ${tables.readers} as reader on reader.name = $1`,
    [name],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("The table feed_position must have its row.");
  if (row.owner !== null && row.owner !== row.role) throw new ForeignReaderError(name, row.owner, row.role);
  return row.place;
}

/**
 * Sets a reader that is new, or has been reset, before the oldest change that is kept or after the newest.
 *
 * @throws FeedGapError if a reader that starts over can't learn from the beginning what it must delete
 */
export async function placeReader(
  client: Queryable,
  { name, tables }: Reader,
  { at, isReset }: { at: "beginning" | "now"; isReset: boolean },
): Promise<void> {
  if (isReset && at === "beginning") await requireWholeFeed(client, tables, { name });
  const lastId = at === "beginning" ? await findBeginning(client, tables) : (await readPosition(client, tables)).lastId;
  await client.query(
    `insert into ${tables.readers} as reader (name, last_id) values ($1, $2)
     on conflict (name) do update set last_id = excluded.last_id, moved_at = now(), seen_at = now()
       where reader.last_id is null`,
    [name, lastId],
  );
}

/**
 * Locks the reader until the transaction ends, so that one follower at a time is active.
 *
 * @returns the id of the last change that was dealt with; null: another follower has the lock, or the reader was reset
 */
export async function lockReader(client: Queryable, { name, tables }: Reader): Promise<number | null> {
  const { rows } = await client.query<{ lastId: number | null }>(
    `select last_id::float8 as "lastId" from ${tables.readers} where name = $1 for update skip locked`,
    [name],
  );
  return rows[0]?.lastId ?? null;
}

export async function moveReader(client: Queryable, { name, tables }: Reader, lastId: number): Promise<void> {
  await client.query(`update ${tables.readers} set last_id = $2, moved_at = now(), seen_at = now() where name = $1`, [
    name,
    lastId,
  ]);
}

/** Records that the reader's program runs. While a follower has the lock, that one does. */
export async function noteSeen(client: Queryable, { name, tables }: Reader): Promise<void> {
  await client.query(
    `update ${tables.readers} set seen_at = now()
     where name = (select name from ${tables.readers} where name = $1 for update skip locked)`,
    [name],
  );
}
