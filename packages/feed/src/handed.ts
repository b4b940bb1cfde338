import type { Queryable } from "@booking-events/store";
import type { Handed } from "./deliver/filter.ts";
import type { FeedTables } from "./tables.ts";

interface Bookings {
  /** Of the reader. */
  name: string;
  bookingIds: string[];
}

/** @returns those of the bookings that the reader was ever given */
export async function findHanded(
  client: Queryable,
  { handed }: FeedTables,
  { name, bookingIds }: Bookings,
): Promise<Set<string>> {
  if (bookingIds.length === 0) return new Set();
  const { rows } = await client.query<{ bookingId: string }>(
    `select booking_id as "bookingId" from ${handed} where reader = $1 and booking_id = any($2)`,
    [name, bookingIds],
  );
  return new Set(rows.map(({ bookingId }) => bookingId));
}

/** A reader that pulls may read a page again, so where the booking was then is not kept. */
export async function rememberHanded(
  client: Queryable,
  { handed }: FeedTables,
  { name, bookingIds }: Bookings,
): Promise<void> {
  if (bookingIds.length === 0) return;
  await client.query(
    `insert into ${handed} (reader, booking_id, is_inside) select $1, unnest($2::uuid[]), true
     on conflict (reader, booking_id) do nothing`,
    [name, bookingIds],
  );
}

/** Remembers what a consumer knows of bookings, if the process still holds its lease. */
export async function recordHanded(
  client: Queryable,
  { handed, readers }: FeedTables,
  { name, token }: { name: string; token: string },
  bookings: ReadonlyMap<string, Handed>,
): Promise<void> {
  if (bookings.size === 0) return;
  await client.query(
    `insert into ${handed} (reader, booking_id, is_inside)
     select name, booking_id, is_inside from ${readers}, unnest($3::uuid[], $4::boolean[]) as given (booking_id, is_inside)
     where name = $1 and active_id = $2
     on conflict (reader, booking_id) do update set is_inside = excluded.is_inside`,
    [name, token, [...bookings.keys()], [...bookings.values()].map((handed) => handed === "inside")],
  );
}
