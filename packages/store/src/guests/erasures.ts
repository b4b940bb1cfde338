import type { Queryable } from "../connect/queryable.ts";

/** How long a statement may take. A booking with a hundred thousand events takes seconds. */
export const erasingTimeoutMs = 15 * 60 * 1_000;

export interface ErasedCounts {
  bookings: number;
  events: number;
  deadLetters: number;
}

/**
 * Sees that PostgreSQL's statistics hold no samples of guests' data, whoever has asked for some.
 *
 * @throws what PostgreSQL throws, 42501 if there are samples that only a superuser may remove
 */
export async function removeGuestSamples(client: Queryable): Promise<void> {
  await client.query("select remove_guest_samples()");
}

/** Records that an erasure begins. */
export async function beginErasure(
  client: Queryable,
  erasure: { by: string; reason: string; search: "email" | "phone" | "reference" },
): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    "insert into erasures (erased_by, reason, search) values ($1, $2, $3) returning id",
    [erasure.by, erasure.reason, erasure.search],
  );
  return rows[0]?.id ?? "";
}

export async function countErased(client: Queryable, erasureId: string, counts: ErasedCounts): Promise<void> {
  await client.query(
    `update erasures set bookings = bookings + $2, events = events + $3, dead_letters = dead_letters + $4
     where id = $1`,
    [erasureId, counts.bookings, counts.events, counts.deadLetters],
  );
}

export async function countErasedJob(client: Queryable, erasureId: string): Promise<void> {
  await client.query("update erasures set jobs = jobs + 1 where id = $1", [erasureId]);
}

/** What was erased of a guest, and why. It holds nothing of the guest. */
export interface Erasure extends ErasedCounts {
  id: string;
  at: Date;
  by: string;
  reason: string;
  /** By what the guest was found. */
  search: "email" | "phone" | "reference";
  /** Events that were taken out of the queue. */
  jobs: number;
}

/** Lists the erasures, the newest first. */
export async function listErasures(client: Queryable, limit: number): Promise<Erasure[]> {
  const { rows } = await client.query<Erasure>(
    `select id, erased_at as at, erased_by as by, reason, search, bookings, events, dead_letters as "deadLetters", jobs
     from erasures order by erased_at desc, id desc limit $1`,
    [limit],
  );
  return rows;
}

/** Finds the erasure that has erased a booking: the last one that had begun by then. */
export async function findErasure(client: Queryable, bookingKey: Buffer): Promise<{ by: string } | undefined> {
  const { rows } = await client.query<{ by: string }>(
    `select erased_by as by from erasures
     where erased_at <= (select erased_at from bookings where booking_key = $1)
     order by erased_at desc limit 1`,
    [bookingKey],
  );
  return rows[0];
}
