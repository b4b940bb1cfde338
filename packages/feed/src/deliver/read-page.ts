import type { FeedChange, Queryable } from "@booking-events/store";
import { FeedGapError } from "../errors.ts";
import type { FeedTables } from "../tables.ts";
import { type FeedEntry, laggingMs } from "./feed-entry.ts";

export interface PageOptions {
  name: string;
  after: number;
  limit: number;
  /** Only changes of these partners and kinds. Null: all. */
  partners: string[] | null;
  kinds: FeedChange[] | null;
  /** Null: every change counts. */
  skip: SkipOptions | null;
}

/**
 * Old changes are left out if a newer one of the booking comes in the same round: one walk through the feed, to where it
 * ended at the beginning. So a booking that changes all the time comes once in each round, however long that takes.
 */
export interface SkipOptions {
  /** What was skipped since then has not been handed over. */
  roundStart: number;
  /** Null: it begins here, and goes to the end of the feed. */
  roundEnd: number | null;
  /** Changes that take the place of earlier ones. Null: any. */
  standingKinds: FeedChange[] | null;
}

export interface FeedPage {
  entries: FeedEntry[];
  /** Everything up to here has been read. */
  upTo: number;
  /** Where the feed ended. */
  end: number;
}

/**
 * Reads a page of the feed for one consumer, which leaves out what that one needs not.
 *
 * @throws FeedGapError
 */
export async function readPage(client: Queryable, tables: FeedTables, options: PageOptions): Promise<FeedPage> {
  const { name, after, limit, partners, kinds, skip } = options;
  const { rows } = await client.query<PageRow>(selectPage(tables), [
    after,
    limit,
    partners,
    kinds,
    skip !== null,
    skip?.roundStart ?? null,
    skip?.roundEnd ?? null,
    skip?.standingKinds ?? null,
    laggingMs / 1_000,
  ]);
  const nowMs = performance.now();
  const [first] = rows;
  if (first === undefined) throw new Error("The table feed_position must have its row.");
  checkPage(name, after, limit, first);
  return {
    entries: rows.flatMap((row) => (row.id === null ? [] : [toEntry(row as PageRow & { id: number }, nowMs)])),
    upTo: after + first.count,
    end: first.end,
  };
}

interface PageRow {
  /** Where the feed ended and begins when the page was read. */
  end: number;
  keptFrom: number;
  /** How many changes there were, with those that were left out, and the last of them. */
  count: number;
  last: number | null;
  /** Null: all were left out. */
  id: number | null;
  bookingId: string;
  partner: string;
  change: FeedChange;
  ageMs: number;
  standsForEarlier: boolean;
}

function checkPage(name: string, after: number, limit: number, { end, keptFrom, count, last }: PageRow): void {
  if (after + 1 < keptFrom)
    throw new FeedGapError(name, after, `the changes before ${keptFrom} were removed: they were too old.`);
  if (last !== null && last !== after + count)
    throw new FeedGapError(name, after, `changes before ${last} are missing.`);
  if (count < limit && after + count < end)
    throw new FeedGapError(name, after + count, `the changes up to ${end} are missing.`);
  if (after > end) throw new FeedGapError(name, after, `the feed ends at ${end}, before the reader's place.`);
}

function toEntry(row: PageRow & { id: number }, nowMs: number): FeedEntry {
  const { id, bookingId, partner, change, ageMs, standsForEarlier } = row;
  return { id, bookingId, partner, change, standsForEarlier, atMs: nowMs - ageMs };
}

const selectPage = ({ changes, position }: FeedTables) => `
  with page as materialized (
    select id, booking_id, partner, change, changed_at, changed_at < now() - make_interval(secs => $9) as is_old
    from ${changes} where id > $1 order by id limit $2
  ), scanned as (
    select count(*)::float8 as count, max(id)::float8 as last from page
  )
  select position.last_id::float8 as end, position.kept_from::float8 as "keptFrom", scanned.count, scanned.last,
    kept.id::float8 as id, kept.booking_id as "bookingId", kept.partner, kept.change,
    (extract(epoch from now() - kept.changed_at) * 1000)::float8 as "ageMs", $5 and exists (
      select from ${changes} as earlier
      where earlier.booking_id = kept.booking_id and earlier.id < kept.id and earlier.id > $6
        and earlier.changed_at < now() - make_interval(secs => $9)
    ) as "standsForEarlier"
  from ${position} as position cross join scanned
  left join page as kept on ($3::text[] is null or kept.partner = any($3))
    and ($4::text[] is null or kept.change = any($4))
    and not ($5 and kept.is_old and exists (
      select from ${changes} as newer
      where newer.booking_id = kept.booking_id and newer.id > kept.id
        and newer.id <= coalesce($7::bigint, position.last_id)
        and ($8::text[] is null or newer.change = any($8))
    ))
  order by kept.id`;
