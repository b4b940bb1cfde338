import {
  type DigestKey,
  findGuestBookings,
  findGuestLetters,
  type GuestBooking,
  type GuestLetter,
  type GuestSearch,
} from "@booking-events/store";
import { type Context, inBoth, type Pool } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { readKey } from "../services/digest-key.ts";
import { requireKnown } from "../services/partners-file.ts";

export interface StoredFindings {
  bookings: (GuestBooking & OfTest)[];
  letters: (GuestLetter & OfTest)[];
}

interface OfTest {
  /** It is of a test partner. */
  isTest: boolean;
}

/** Finds what is stored of a guest, apart from what waits in the queue. */
export async function findGuest(
  context: Context,
  search: GuestSearch,
): Promise<{ exact: StoredFindings; near: StoredFindings }> {
  const [real, test] = await inBoth(context, (each) =>
    withDatabase(each, async (pool) => findStored(pool, await readKey(each, pool), search, each.isTest === true)),
  );
  const found = join(real, test);
  requireKnown(context, search.partner, [...found.bookings, ...found.letters]);
  return { exact: exactOf(found), near: nearOf(found) };
}

function join(...all: (StoredFindings | undefined)[]): StoredFindings {
  return {
    bookings: all.flatMap((found) => found?.bookings ?? []),
    letters: all.flatMap((found) => found?.letters ?? []),
  };
}

/** @param isTest whether the pool is for the bookings of test partners */
export async function findStored(
  pool: Pool,
  key: DigestKey,
  search: GuestSearch,
  isTest: boolean,
): Promise<StoredFindings> {
  const bookings = await findGuestBookings(pool, key, search);
  const letters = await findGuestLetters(pool, search);
  return {
    bookings: bookings.map((booking) => ({ ...booking, isTest })),
    letters: letters.map((letter) => ({ ...letter, isTest })),
  };
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
