import {
  type DigestKey,
  findGuestBookings,
  findGuestLetters,
  type GuestBooking,
  type GuestLetter,
  type GuestSearch,
} from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { readKey } from "../services/digest-key.ts";
import { requireKnown } from "../services/partners-file.ts";

export interface StoredFindings {
  bookings: GuestBooking[];
  letters: GuestLetter[];
}

/** Finds what is stored of a guest, apart from what waits in the queue. */
export async function findGuest(
  context: Context,
  search: GuestSearch,
): Promise<{ exact: StoredFindings; near: StoredFindings }> {
  const found = await withDatabase(context, async (pool) => findStored(pool, await readKey(context, pool), search));
  requireKnown(context, search.partner, [...found.bookings, ...found.letters]);
  return { exact: exactOf(found), near: nearOf(found) };
}

export async function findStored(pool: Pool, key: DigestKey, search: GuestSearch): Promise<StoredFindings> {
  const bookings = await findGuestBookings(pool, key, search);
  return { bookings, letters: await findGuestLetters(pool, search) };
}

/** What is the guest's. Only this may be erased. */
export function exactOf(found: StoredFindings): StoredFindings {
  return {
    bookings: found.bookings.filter(({ closeness }) => closeness === "exact"),
    letters: found.letters.filter(({ closeness }) => closeness === "exact"),
  };
}

/** What may be the guest's. An operator has to look. */
export function nearOf(found: StoredFindings): StoredFindings {
  return {
    bookings: found.bookings.filter(({ closeness }) => closeness === "near"),
    letters: found.letters.filter(({ closeness }) => closeness === "near"),
  };
}
