import type { Queryable } from "@booking-events/store";
import { FeedGapError } from "./errors.ts";
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

/** @throws FeedGapError if a reader that starts over after a change can't learn from there what it must delete */
export async function requireWholeFeed(
  client: Queryable,
  tables: FeedTables,
  { name, after = 0 }: { name: string; after?: number },
): Promise<void> {
  const { keptFrom } = await readPosition(client, tables);
  if (keptFrom > after + 1)
    throw new FeedGapError(name, after, `the changes before ${keptFrom} were removed, so from: "snapshot" is needed.`);
}
