import type { Place, Refold, Refolding } from "@booking-events/bookings";
import { gatherPerTurn } from "@booking-events/runtime";
import { type LogPage, type LogRange, type Queryable, RollBack, readLog, reviseEvents } from "@booking-events/store";

/** How many logged events may be read while other bookings wait: of one booking, and in one transaction. */
const maxHistoryTogether = 2_000;
const maxHistoryInTransaction = 20_000;

/** The booking needs to read more of its log than it may while other bookings wait. */
export class TooMuchHistory extends RollBack {
  override name = "TooMuchHistory";
}

/** Reads the logs of bookings. Pages that are asked for in one turn of the event loop share a query. */
export class LogReader {
  readonly #readTogether: (range: LogRange) => Promise<LogPage>;
  readonly #isLimited: boolean;
  #eventsRead = 0;
  readonly #eventsReadOf = new Map<Buffer, number>();

  /** @param options.isAlone no other bookings wait, so there is no limit to what is read */
  constructor(client: Queryable, { isAlone }: { isAlone: boolean }) {
    this.#readTogether = gatherPerTurn((ranges) => readLog(client, ranges));
    this.#isLimited = !isAlone;
  }

  /** @throws TooMuchHistory */
  async readPage(range: LogRange): Promise<LogPage> {
    const page = await this.#readTogether(range);
    const ofBooking = (this.#eventsReadOf.get(range.bookingKey) ?? 0) + page.events.length;
    this.#eventsReadOf.set(range.bookingKey, ofBooking);
    this.#eventsRead += page.events.length;
    if (this.#isLimited && (ofBooking > maxHistoryTogether || this.#eventsRead > maxHistoryInTransaction))
      throw new TooMuchHistory("The history must be read in a transaction of its own.");
    return page;
  }
}

/** The first page is small, since the event after most late events decides them. */
const pageSizes = [20, 200, 1_000] as const;
/** How many revised events are held before they are written. */
const maxRevisedHeld = 1_000;

/**
 * Folds late events into a booking: see {@link Refold}. Reads the log page by page, and no further than necessary. Writes
 * revised events when there are too many to hold; the others are in the result.
 *
 * @param firstId none of the booking's logged events has an id before this
 * @throws TooMuchHistory
 */
export async function refoldBooking(
  client: Queryable,
  logs: LogReader,
  { bookingKey, firstId }: Pick<LogRange, "bookingKey" | "firstId">,
  refold: Refold,
): Promise<Refolding> {
  function readPage(from: Place, pageNumber: number): Promise<LogPage> {
    const limit = pageSizes[Math.min(pageNumber, pageSizes.length - 1)] as number;
    return logs.readPage({ bookingKey, firstId, from, limit });
  }

  for (let place = refold.nextPlace(); place !== undefined; place = refold.nextPlace()) {
    let page = await readPage(place, 0);
    refold.begin(page.before, page.events[0]);
    for (let pageNumber = 1; !refold.foldPage(page.events); pageNumber += 1) {
      const last = page.events.at(-1);
      if (page.isEnd || last === undefined) {
        refold.endLog();
        break;
      }
      if (refold.revisedCount >= maxRevisedHeld) await reviseEvents(client, refold.takeRevised());
      page = await readPage(last, pageNumber);
    }
  }
  const decider = refold.unseenDecider();
  if (decider !== undefined) {
    const { events, before } = await readPage(decider, 0);
    refold.foldDecider(events[0], before);
  }
  return refold.result();
}
