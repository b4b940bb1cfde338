import { type Place, Refold, type Refolding, type RevisedEvent } from "@booking-events/bookings";
import { type LogPage, type LogRange, RollBack } from "@booking-events/store";

/** The booking needs to read more of its log than it may while other bookings wait. */
export class TooMuchHistory extends RollBack {
  override name = "TooMuchHistory";
  readonly bookingKey: Buffer;

  constructor(bookingKey: Buffer) {
    super("The booking's history must be read in a transaction of its own.");
    this.bookingKey = bookingKey;
  }
}

/** The first page is small, since most late events are settled by the event after them. */
const pageSizes = [20, 200, 1_000] as const;
/** How many revised events are held before they are written. */
const maxRevisedHeld = 1_000;

/**
 * Folds late events into a booking: see {@link Refold}. Reads the log page by page, and no further than necessary.
 *
 * @param options.firstId none of the booking's logged events has an id before this
 * @param options.booking see the constructor of {@link Refold}
 * @param options.maxEvents how many events may be read; undefined: no limit
 * @param options.readLog reads a page of the log
 * @param options.revise writes revised events when there are too many to hold. The others are in the result
 * @throws TooMuchHistory
 */
export async function refoldBooking(options: {
  bookingKey: Buffer;
  firstId: string;
  booking: ConstructorParameters<typeof Refold>[0];
  maxEvents: number | undefined;
  readLog: (range: LogRange) => Promise<LogPage>;
  revise: (events: RevisedEvent[]) => Promise<void>;
}): Promise<Refolding> {
  const { booking, revise } = options;
  const refold = new Refold(booking);
  const read = createPageReader(options);
  for (let place = refold.nextPlace(); place !== undefined; place = refold.nextPlace())
    await foldFrom(place, refold, read, revise);
  const decider = refold.unseenDecider();
  if (decider !== undefined) {
    const { events, before } = await read(decider, 0);
    refold.foldDecider(events[0], before);
  }
  return refold.result();
}

/** Reads the page with the number, from 0, that begins at the place. */
type ReadPage = (from: Place, pageNumber: number) => Promise<LogPage>;

function createPageReader({
  bookingKey,
  firstId,
  maxEvents,
  readLog,
}: Pick<Parameters<typeof refoldBooking>[0], "bookingKey" | "firstId" | "maxEvents" | "readLog">): ReadPage {
  let eventsRead = 0;
  return async (from, pageNumber) => {
    const limit = pageSizes[Math.min(pageNumber, pageSizes.length - 1)] as number;
    const page = await readLog({ bookingKey, from, limit, firstId });
    eventsRead += page.events.length;
    if (maxEvents !== undefined && eventsRead > maxEvents) throw new TooMuchHistory(bookingKey);
    return page;
  };
}

async function foldFrom(
  place: Place,
  refold: Refold,
  read: ReadPage,
  revise: (events: RevisedEvent[]) => Promise<void>,
): Promise<void> {
  let page = await read(place, 0);
  refold.begin(page.before, page.events[0]);
  for (let pageNumber = 1; !refold.foldPage(page.events); pageNumber += 1) {
    const last = page.events.at(-1);
    if (page.isEnd || last === undefined) {
      refold.endLog();
      return;
    }
    if (refold.revisedCount >= maxRevisedHeld) await revise(refold.takeRevised());
    page = await read(last, pageNumber);
  }
}
