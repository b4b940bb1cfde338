import { defaultSchema, type Queryable } from "@booking-events/store";
import { changedFields } from "../deliver/changed-fields.ts";
import type { DeliveryFilter } from "../deliver/consumer-options.ts";
import { type Handed, isInside, judge, kindsToLookAt, needsMemory } from "../deliver/filter.ts";
import { readPage } from "../deliver/read-page.ts";
import { findHanded, rememberHanded } from "../handed.ts";
import { type BookingChange, readChanges } from "../read-changes.ts";
import { type FeedTables, tablesIn } from "../tables.ts";

export interface PullOptions {
  /** The reader's name. It must be in `feed_readers`, since what was pulled of a filter is remembered with it. */
  name: string;
  /** Where the service's tables are. Default: `"public"`. */
  schema?: string;
  /** The id after which the page begins. */
  after: number;
  /** How many changes the page has at most. Each brings two payloads of up to 64 KiB. */
  limit: number;
  filter?: DeliveryFilter;
}

export interface PulledChange {
  change: BookingChange;
  /** As in a delivery. */
  changedFields: string[] | null;
}

export interface PulledPage {
  changes: PulledChange[];
  /** The feed has been read up to here: the next page begins after it. */
  upTo: number;
  /** Nothing comes after it yet. */
  isEnd: boolean;
}

/** More than a page, since most of these may be left out, and none brings a payload. */
const idsPerPage = 1_000;
/** By these, a booking is inside a filter or outside. */
const placeInFilter = ["consumerTripArrivalDate", "consumerTripDestinationCountryName"] as const;

/**
 * Reads a page of the feed for a program that keeps its place itself, and may read what it has read before.
 *
 * A filter decides of which bookings it begins to hear. One that it has ever pulled is also reported when it is deleted or
 * erased, and when a change takes it out of the filter.
 *
 * @throws FeedGapError
 */
export async function pullChanges(
  client: Queryable,
  { name, schema = defaultSchema, after, limit, filter = {} }: PullOptions,
): Promise<PulledPage> {
  const tables = tablesIn(schema);
  const [partners, kinds] = [filter.partners ?? null, kindsToLookAt(filter)];
  const idLimit = partners === null && kinds === null ? limit : idsPerPage;
  const page = await readPage(client, tables, { name, after, limit: idLimit, partners, kinds, skip: null });
  const entries = page.entries.slice(0, limit);
  // What is left is in the next page.
  const upTo = entries.length < page.entries.length ? (entries.at(-1)?.id ?? after) : page.upTo;
  const changes = await readChanges(client, tables, { name, ids: entries.map(({ id }) => id) });
  const wanted = needsMemory(filter) ? await choose(client, tables, { name, filter, changes }) : changes;
  return {
    changes: wanted.map((change) => ({ change, changedFields: changedFields(change) })),
    upTo,
    isEnd: upTo >= page.end,
  };
}

/** Remembers the bookings that are chosen, before they are handed over. */
async function choose(
  client: Queryable,
  tables: FeedTables,
  { name, filter, changes }: { name: string; filter: DeliveryFilter; changes: BookingChange[] },
): Promise<BookingChange[]> {
  const known = await findHanded(client, tables, { name, bookingIds: changes.map(({ bookingId }) => bookingId) });
  const handedNow = new Set<string>();
  const wanted = changes.filter((change) => {
    const isKnown = known.has(change.bookingId) || handedNow.has(change.bookingId);
    const { isWanted } = judge(filter, change, isKnown ? before(filter, change) : "never");
    if (isWanted && !isKnown) handedNow.add(change.bookingId);
    return isWanted;
  });
  await rememberHanded(client, tables, { name, bookingIds: [...handedNow] });
  return wanted;
}

/** The content before the change tells this however often a page is read. If that is gone, the change is reported. */
function before(
  { arrival, ...others }: DeliveryFilter,
  { payload, previousPayload, previousPayloadState, changedAt }: BookingChange,
): Handed {
  if (previousPayload === null) return previousPayloadState === "removed" ? "inside" : "outside";
  // Days pass without a change: what is too close for the window now may have been pulled inside it.
  const isMoved = placeInFilter.some((field) => payload?.[field] !== previousPayload[field]);
  const fromDays = isMoved ? Number.NEGATIVE_INFINITY : (arrival?.fromDays ?? 0);
  const seenThen = arrival === undefined ? others : { ...others, arrival: { ...arrival, fromDays } };
  return isInside(seenThen, { payload: previousPayload, changedAt }) ? "inside" : "outside";
}
