import { openQueuedEvents, type QueuedEvents } from "@booking-events/queue";
import {
  type BookingToErase,
  beginErasure,
  bookingKey,
  countErasedJob,
  type DigestKey,
  type ErasedCounts,
  eraseBooking,
  eraseDeadLetters,
  GuestHits,
  type GuestSearch,
  matchEnvelope,
  recordErased,
  recordErasedLetter,
  removeGuestSamples,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { type Context, inBoth, type Pool } from "../context.ts";
import { isUuid } from "../is-uuid.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { openKey, readKey } from "../services/digest-key.ts";
import { withRedis } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import {
  exactOf,
  type Findings,
  type FoundGuest,
  findStored,
  isNothing,
  joinFindings,
  pick,
  type QueuedMatch,
} from "./find-guest.ts";

interface Erasing {
  pool: Pool;
  queue: QueuedEvents;
  key: DigestKey;
  search: GuestSearch;
  /** What is found and erased is of test partners. */
  isTest: boolean;
}

export interface Counts extends ErasedCounts {
  jobs: number;
  /** Events that workers hold at the end. They are recorded without their content, unless no worker can read them. */
  held: number;
}

/** What an erasure has done. */
export interface Erased {
  /** Null: nothing was found. */
  counts: Counts | null;
  /** Applied events, too, are in Redis' append-only files until these are rewritten. */
  appendOnlyFiles: Awaited<ReturnType<QueuedEvents["rewriteAppendOnlyFiles"]>>;
}

/**
 * Finds what is stored of a guest, and what waits in the queue.
 *
 * @param limit of exact hits among bookings, among dead letters, and among events in the queue. Default: none
 */
export async function findGuestEverywhere(context: Context, search: GuestSearch, limit?: number): Promise<FoundGuest> {
  const found = await withQueue(context, async (queue) => {
    const queued = await findQueued(queue, search, { limit });
    return inBoth(context, (each) =>
      withDatabase(each, async (pool) => {
        await requireSameDatabase(each, pool);
        const isTest = each.isTest === true;
        const stored = await findStored(pool, await readKey(each, pool), search, { isTest, limit });
        return { ...stored, queued: queued.filter((match) => match.isTest === isTest) };
      }),
    );
  });
  return joinFindings(context, search, found);
}

/** Erases what was found of a guest, and what has come in since; of test partners, too. */
export function eraseGuest(
  context: ActingContext,
  search: GuestSearch,
  found: Findings,
  { reason }: { reason: string },
): Promise<Erased> {
  const action = { command: "guests erase", arguments: { by: search.by, partner: search.partner } };
  return recordAction(context, action, async (record) => {
    const counts: Counts = { bookings: 0, events: 0, deadLetters: 0, jobs: 0, held: 0 };
    record.did = counts;
    await inBoth(context, async (each) => {
      const ofEach = pick(found, ({ isTest }) => isTest === (each.isTest === true));
      if (isNothing(ofEach)) return;
      await withErasing(each, search, (erasing) => eraseAll(erasing, ofEach, { reason, by: context.by, counts }));
    });
    return {
      counts: isNothing(found) ? null : counts,
      appendOnlyFiles: await withErasing(context, search, ({ queue }) => queue.rewriteAppendOnlyFiles()),
    };
  });
}

async function withErasing<Result>(
  context: Context,
  search: GuestSearch,
  work: (erasing: Erasing) => Promise<Result>,
): Promise<Result> {
  return withQueue(context, (queue) =>
    withDatabase(context, async (pool) => {
      await requireSameDatabase(context, pool);
      return work({ pool, queue, key: await openKey(context, pool), search, isTest: context.isTest === true });
    }),
  );
}

async function withQueue<Result>(context: Context, work: (queue: QueuedEvents) => Promise<Result>): Promise<Result> {
  return withRedis(context, async (settings) => {
    const queue = await openQueuedEvents(settings);
    try {
      await queue.check();
      return await work(queue);
    } finally {
      queue.close();
    }
  });
}

/** Each round erases what has come in during the one before. */
const maxRounds = 10;

/**
 * Looks through the queue, and then through PostgreSQL: an event that has left the queue before it could be read is in
 * PostgreSQL by then.
 *
 * @param known names of bookings that have been erased; all events of them are found
 */
async function findEverywhere(
  { pool, queue, key, search, isTest }: Erasing,
  known: ReadonlySet<string>,
): Promise<Findings> {
  const queued = await findQueued(queue, search, { known });
  return {
    ...(await findStored(pool, key, search, { isTest })),
    queued: queued.filter((match) => match.isTest === isTest),
  };
}

async function findQueued(
  queue: QueuedEvents,
  search: GuestSearch,
  { known = new Set(), limit }: { known?: ReadonlySet<string>; limit?: number | undefined },
): Promise<QueuedMatch[]> {
  const hits = new GuestHits<QueuedMatch>(limit);
  const seen = new Set<string>();
  for await (const events of queue.read()) {
    for (const { shard, jobId, text, isTest: hasTestSubject } of events) {
      const match = matchEnvelope(search, text, (booking) => known.has(nameOf(booking)));
      // A replay may have put the event into another shard as well.
      const name = `${shard} ${jobId}`;
      if (match === undefined || seen.has(name)) continue;
      const isTest = match.isReadable ? match.isTest : hasTestSubject;
      // Only those that are kept are remembered: a whole queue may be similar.
      if (hits.add({ shard, jobId, match, isTest, closeness: match.closeness })) seen.add(name);
    }
    if (hits.isFull) break;
  }
  return hits.all;
}

/**
 * Erases what was found, and looks again until nothing is left. The bookings go first: once a booking is erased, events
 * of it that come in are recorded without their content, whoever processes them. If this is interrupted, another run
 * finds what is left.
 */
async function eraseAll(
  erasing: Erasing,
  found: Findings,
  { reason, by, counts }: { reason: string; by: string; counts: Counts },
): Promise<void> {
  await removeGuestSamples(erasing.pool);
  const erasureId = await beginErasure(erasing.pool, { by, reason, search: erasing.search.by });
  const known = new Set<string>();
  const heldBefore = counts.held;
  for (let round = 1; round <= maxRounds; round += 1) {
    const hasErased = await eraseFound(erasing, found, { erasureId, by, counts, known, heldBefore });
    if (!hasErased) return;
    found = exactOf(await findEverywhere(erasing, known));
  }
  throw new OperationFailure("Events of the guest keep coming in. Run the command again.");
}

interface Round {
  erasureId: string;
  by: string;
  counts: Counts;
  /** Names of the bookings that have been erased. */
  known: Set<string>;
  /** Of `counts`, before this erasure. */
  heldBefore: number;
}

/** @returns whether anything was erased */
async function eraseFound(erasing: Erasing, found: Findings, round: Round): Promise<boolean> {
  const { counts } = round;
  const before = counts.bookings + counts.deadLetters + counts.jobs;
  await eraseBookings(erasing, found, round);
  const unreadable = found.letters.filter(({ booking }) => booking === undefined).map(({ eventId }) => eventId);
  if (unreadable.length > 0) counts.deadLetters += await eraseDeadLetters(erasing.pool, unreadable, round);
  counts.held = round.heldBefore;
  for (const queued of found.queued) await eraseQueued(erasing, queued, round);
  return counts.bookings + counts.deadLetters + counts.jobs > before;
}

async function eraseBookings({ pool, key }: Erasing, found: Findings, round: Round): Promise<void> {
  const ofLetters = found.letters.flatMap(({ booking }) => (booking === undefined ? [] : [booking]));
  const ofQueued = found.queued.flatMap(({ match }) => (match.isReadable ? [match.booking] : []));
  const unknown = [...ofLetters, ...ofQueued].filter((booking) => !round.known.has(nameOf(booking)));
  const byName = new Map([...unknown, ...found.bookings].map((booking) => [nameOf(booking), booking]));
  const bookings: BookingToErase[] = [...byName.values()];
  for (const booking of bookings) {
    const erased = await eraseBooking(pool, key, booking, round);
    round.counts.bookings += erased.bookings;
    round.counts.events += erased.events;
    round.counts.deadLetters += erased.deadLetters;
    round.known.add(nameOf(booking));
  }
}

/** Records the event before it leaves the queue, so that it is never nowhere. */
async function eraseQueued(
  { pool, queue, key }: Erasing,
  { shard, jobId, match }: QueuedMatch,
  round: Round,
): Promise<void> {
  if (match.isReadable) {
    const { booking, kind } = match;
    const { id, sequence, receivedAt } = booking.event;
    const { partner, referenceKind, reference } = booking;
    const plainKey = bookingKey(partner, referenceKind, reference);
    await recordErased(pool, key, { id, partner, kind, referenceKind, bookingKey: plainKey, sequence, receivedAt });
  }
  if (await queue.takeOut({ shard, jobId })) {
    if (!match.isReadable && isUuid(jobId)) await recordErasedLetter(pool, jobId, round.by);
    await countErasedJob(pool, round.erasureId);
    round.counts.jobs += 1;
    return;
  }
  round.counts.held += 1;
}

function nameOf({ partner, referenceKind, reference }: BookingToErase): string {
  return bookingKey(partner, referenceKind, reference).toString("hex");
}
