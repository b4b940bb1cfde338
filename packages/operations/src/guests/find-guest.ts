import {
  type DigestKey,
  findGuestBookings,
  findGuestLetters,
  type GuestBooking,
  type GuestLetter,
  type GuestSearch,
  type MatchingEvent,
} from "@booking-events/store";
import { type Context, inBoth, type Pool } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { readKey } from "../services/digest-key.ts";
import { requireKnown } from "../services/partners-file.ts";

export interface Findings {
  bookings: (GuestBooking & OfTest)[];
  letters: (GuestLetter & OfTest)[];
  /** Empty also if the queue was not looked at. */
  queued: QueuedMatch[];
}

interface OfTest {
  /** It is of a test partner. */
  isTest: boolean;
}

export interface QueuedMatch extends OfTest, Pick<MatchingEvent, "closeness"> {
  shard: number;
  jobId: string;
  match: MatchingEvent;
}

export interface FoundGuest {
  /** What is the guest's. Only this may be erased. */
  exact: Findings;
  /** What may be the guest's. An operator has to look. */
  near: Findings;
}

/**
 * Finds what is stored of a guest, apart from what waits in the queue.
 *
 * @param limit of exact hits among bookings, and among dead letters. Default: none
 */
export async function findGuest(context: Context, search: GuestSearch, limit?: number): Promise<FoundGuest> {
  const found = await inBoth(context, (each) =>
    withDatabase(each, async (pool) =>
      findStored(pool, await readKey(each, pool), search, { isTest: each.isTest === true, limit }),
    ),
  );
  return joinFindings(context, search, found);
}

/** @param options.isTest whether the pool is for the bookings of test partners */
export async function findStored(
  pool: Pool,
  key: DigestKey,
  search: GuestSearch,
  { isTest, limit }: { isTest: boolean; limit?: number | undefined },
): Promise<Findings> {
  const bookings = await findGuestBookings(pool, key, search, limit);
  const letters = await findGuestLetters(pool, search, limit);
  return {
    bookings: bookings.map((booking) => ({ ...booking, isTest })),
    letters: letters.map((letter) => ({ ...letter, isTest })),
    queued: [],
  };
}

/** @throws OperationFailure if nothing was found, and there is no such partner */
export function joinFindings(context: Context, { partner }: GuestSearch, all: Findings[]): FoundGuest {
  const joined: Findings = {
    bookings: all.flatMap(({ bookings }) => bookings),
    letters: all.flatMap(({ letters }) => letters),
    queued: all.flatMap(({ queued }) => queued),
  };
  requireKnown(context, partner, Object.values(joined).flat());
  return { exact: exactOf(joined), near: pick(joined, ({ closeness }) => closeness === "near") };
}

export function exactOf(found: Findings): Findings {
  return pick(found, ({ closeness }) => closeness === "exact");
}

export function pick(
  { bookings, letters, queued }: Findings,
  isWanted: (one: OfTest & Pick<MatchingEvent, "closeness">) => boolean,
): Findings {
  return { bookings: bookings.filter(isWanted), letters: letters.filter(isWanted), queued: queued.filter(isWanted) };
}

export function isNothing({ bookings, letters, queued }: Findings): boolean {
  return bookings.length + letters.length + queued.length === 0;
}
