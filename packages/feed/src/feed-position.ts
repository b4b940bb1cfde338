import type { Queryable } from "@booking-events/store";
import { FeedGapError } from "./errors.ts";
import { type BookingChange, readChanges } from "./read-changes.ts";
import type { FeedTables } from "./tables.ts";

interface FeedPosition {
  lastId: number;
  /** Older changes were removed. */
  keptFrom: number;
}

export async function readPosition(client: Queryable, tables: FeedTables): Promise<FeedPosition> {
  const { rows } = await client.query<FeedPosition>(
    `select last_id::float8 as "lastId", kept_from::float8 as "keptFrom" from ${tables.position}`,
  );
  const [position] = rows;
  if (position === undefined) throw new Error("The table feed_position must have its row.");
  return position;
}

/** @returns the place before the oldest change that is kept */
export async function findBeginning(client: Queryable, tables: FeedTables): Promise<number> {
  const { rows } = await client.query<{ before: number }>(
    `select coalesce((select min(id) - 1 from ${tables.changes}), last_id)::float8 as before from ${tables.position}`,
  );
  return rows[0]?.before ?? 0;
}

/** @throws FeedGapError if a reader that starts over can't learn from the beginning what it must delete */
export async function requireWholeFeed(client: Queryable, tables: FeedTables, name: string): Promise<void> {
  const { keptFrom } = await readPosition(client, tables);
  if (keptFrom > 1)
    throw new FeedGapError(name, 0, `the changes before ${keptFrom} were removed, so from: "snapshot" is needed.`);
}

/**
 * Reads a page of the feed and checks that nothing is missing in it.
 *
 * @throws FeedGapError
 */
export async function readCompletePage(
  client: Queryable,
  { name, after, limit, tables }: { name: string; after: number; limit: number; tables: FeedTables },
): Promise<BookingChange[]> {
  // Before the page, which then has all changes up to this position.
  const position = await readPosition(client, tables);
  if (after + 1 < position.keptFrom)
    throw new FeedGapError(name, after, `the changes before ${position.keptFrom} were removed: they were too old.`);
  const changes = await readChanges(client, { after, limit, tables });
  let last = after;
  for (const { id } of changes) {
    if (id !== last + 1) throw new FeedGapError(name, last, `the next change is ${id}.`);
    last = id;
  }
  const isEnd = changes.length < limit;
  if (isEnd && last < position.lastId)
    throw new FeedGapError(name, last, `the changes up to ${position.lastId} are missing.`);
  if (last > position.lastId && changes.length === 0)
    throw new FeedGapError(name, last, `the feed ends at ${position.lastId}, before the reader's place.`);
  return changes;
}
