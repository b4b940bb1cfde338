import { randomUUID } from "node:crypto";
import type { Queryable } from "@booking-events/store";
import { findBeginning, readPosition, requireWholeFeed } from "../feed-position.ts";
import type { FeedTables } from "../tables.ts";
import type { CommonOptions } from "./consumer-options.ts";
import { beforeAllBookings, type Place } from "./place.ts";

/**
 * For so long after a lease was last renewed, nobody else takes it. Each process measures that by its own clock: if
 * PostgreSQL's were asked, all leases would end at once when somebody sets it.
 */
export const leaseMs = 10_000;

export interface Beginner extends Required<Pick<CommonOptions, "name" | "from">> {}

/** What a process gets with a lease. */
export interface Lease {
  name: string;
  /** What the process writes counts only while the reader has it. */
  token: string;
  /** Until when nobody else can have it, by `performance.now()`. */
  validUntilMs: number;
  /** Null: the reader has been reset, and starts over. */
  place: Place | null;
  isBreakerOpen: boolean;
}

/** A reader's lease as it was when somebody looked. */
export interface SeenLease {
  name: string;
  /** The token of the process that has it. Null: nobody has. */
  holder: string | null;
  /** Another text each time that the holder renews it. */
  seenAt: string;
}

export interface Reader extends SeenLease {
  owner: string;
  /** The role that has asked. */
  role: string;
}

/** @returns those that exist */
export async function findReaders(client: Queryable, tables: FeedTables, names: string[]): Promise<Reader[]> {
  const { rows } = await client.query<Reader>(
    `select name, owner::text as owner, current_user::text as role, active_id as holder, seen_at::text as "seenAt"
     from ${tables.readers} where name = any($1)`,
    [names],
  );
  return rows;
}

/** Adds the reader unless another process has done so. */
export async function addReader(client: Queryable, tables: FeedTables, { name, from }: Beginner): Promise<void> {
  const { lastId, snapshotAfter } = await findStart(client, tables, from);
  await client.query(
    `insert into ${tables.readers} (name, last_id, snapshot_after) values ($1, $2, $3) on conflict (name) do nothing`,
    [name, lastId, snapshotAfter],
  );
}

/**
 * Places a reader that has been reset, and forgets what it had still to deliver.
 *
 * @throws FeedGapError if it can't learn from there what it must delete
 */
export async function placeAgain(
  client: Queryable,
  tables: FeedTables,
  { name, from, token }: Beginner & { token: string },
): Promise<Place> {
  const place = await findStart(client, tables, from);
  const mayMiss = typeof from === "object" && from.orOldest;
  if (mayMiss) place.lastId = Math.max(place.lastId, await findBeginning(client, tables));
  else if (from === "beginning") await requireWholeFeed(client, tables, { name });
  else if (typeof from === "object") await requireWholeFeed(client, tables, { name, after: from.after });
  await client.query(`select ${tables.removeSpentDeliveries}($1)`, [[name]]);
  await client.query(
    `update ${tables.readers} set last_id = $3, snapshot_after = $4, moved_at = now(), failing_since = null,
       breaker_opened_at = null, probe_at = null
     where name = $1 and active_id = $2 and last_id is null`,
    [name, token, place.lastId, place.snapshotAfter],
  );
  return place;
}

async function findStart(client: Queryable, tables: FeedTables, from: Beginner["from"]): Promise<Place> {
  if (typeof from === "object") return { lastId: from.after, snapshotAfter: null };
  if (from === "beginning") return { lastId: await findBeginning(client, tables), snapshotAfter: null };
  const { lastId } = await readPosition(client, tables);
  return { lastId, snapshotAfter: from === "snapshot" ? beforeAllBookings : null };
}

/**
 * Takes leases, unless somebody has renewed or taken them since they were seen. A reader that somebody else writes at this
 * moment is left out, so that one that is frozen keeps nobody else from the others.
 */
export async function takeLeases(client: Queryable, tables: FeedTables, seen: SeenLease[]): Promise<Lease[]> {
  const token = randomUUID();
  const validUntilMs = performance.now() + leaseMs;
  const { rows } = await client.query<{
    name: string;
    lastId: number | null;
    snapshotAfter: string | null;
    isBreakerOpen: boolean;
  }>(
    `update ${tables.readers} as reader set active_id = $4, seen_at = now()
     from (
       select reader.name
       from ${tables.readers} as reader
       join unnest($1::text[], $2::uuid[], $3::text[]) as seen (name, holder, seen_at) on seen.name = reader.name
       where owner = current_user and active_id is not distinct from holder
         and (active_id is null or reader.seen_at::text = seen.seen_at)
       for no key update of reader skip locked
     ) as free
     where reader.name = free.name
     returning reader.name, last_id::float8 as "lastId", snapshot_after as "snapshotAfter",
       breaker_opened_at is not null as "isBreakerOpen"`,
    [seen.map(({ name }) => name), seen.map(({ holder }) => holder), seen.map(({ seenAt }) => seenAt), token],
  );
  return rows.map(({ name, lastId, snapshotAfter, isBreakerOpen }) => ({
    name,
    token,
    validUntilMs,
    place: lastId === null ? null : { lastId, snapshotAfter },
    isBreakerOpen,
  }));
}

export interface Renewed {
  name: string;
  /** Something waits for another attempt. */
  hasWaiting: boolean;
}

/** @returns those that are still held, whatever the time: nobody has taken the others' place meanwhile */
export async function renewLeases(
  client: Queryable,
  tables: FeedTables,
  leases: Pick<Lease, "name" | "token">[],
): Promise<Renewed[]> {
  const { rows } = await client.query<Renewed>(
    `update ${tables.readers} as reader
     set seen_at = now()
     from unnest($1::text[], $2::uuid[]) as lease (name, token)
     where reader.name = lease.name and active_id = lease.token
     returning reader.name, exists (
       select from ${tables.deliveries} as delivery where delivery.reader = reader.name and retry_at is not null
     ) as "hasWaiting"`,
    columnsOf(leases),
  );
  return rows;
}

export async function releaseLeases(
  client: Queryable,
  tables: FeedTables,
  leases: Pick<Lease, "name" | "token">[],
): Promise<void> {
  await client.query(
    `update ${tables.readers} as reader set active_id = null, seen_at = now()
     from unnest($1::text[], $2::uuid[]) as lease (name, token)
     where reader.name = lease.name and active_id = lease.token`,
    columnsOf(leases),
  );
}

function columnsOf(leases: Pick<Lease, "name" | "token">[]): [string[], string[]] {
  return [leases.map(({ name }) => name), leases.map(({ token }) => token)];
}
