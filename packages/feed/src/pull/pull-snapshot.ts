import { defaultSchema, type Queryable } from "@booking-events/store";
import type { DeliveryFilter } from "../deliver/consumer-options.ts";
import { isInside, needsMemory } from "../deliver/filter.ts";
import { readPosition } from "../feed-position.ts";
import { rememberHanded } from "../handed.ts";
import { type BookingChange, type ChangeRow, toChange } from "../read-changes.ts";
import { tablesIn } from "../tables.ts";

export interface PullSnapshotOptions {
  /** As for `pullChanges`. */
  name: string;
  schema?: string;
  filter?: DeliveryFilter;
  /** Where what was pulled is remembered: another connection, since the snapshot's transaction sees no more. */
  memory: Queryable;
}

/** Up to 64 KiB each. */
const bookingsPerPage = 200;

/**
 * Reads all bookings that are not deleted at one position of the feed. Whoever keeps them, and then pulls the changes after
 * the position, misses nothing.
 *
 * @param client in a transaction with the isolation level `repeatable read`
 */
export async function pullSnapshot(
  client: Queryable,
  { name, schema = defaultSchema, filter = {}, memory }: PullSnapshotOptions,
): Promise<{ position: number; pages: AsyncIterable<BookingChange[]> }> {
  const tables = tablesIn(schema);
  const position = (await readPosition(client, tables)).lastId;

  async function* readPages() {
    await client.query(
      `declare bookings_at_position no scroll cursor for
       select $1::float8 as id, booking_id as "bookingId", partner, reference_kind as "referenceKind", reference, revision,
         'created' as change, coalesce(feed_event_id, event_id) as "eventId", sequence::float8 as sequence,
         null as "previousEventId", updated_at as "changedAt", payload::text as payload, 'current' as "payloadState",
         default_country as "defaultCountry", null as "previousPayload", 'none' as "previousPayloadState",
         now() as "readAt"
       from ${tables.bookings}
       where state = 'active' and erased_at is null and ($2::text[] is null or partner = any($2))`,
      [position, filter.partners ?? null],
    );
    for (let isEnd = false; !isEnd; ) {
      const { rows } = await client.query<ChangeRow & { readAt: Date }>(
        `fetch ${bookingsPerPage} from bookings_at_position`,
      );
      isEnd = rows.length < bookingsPerPage;
      const bookings = rows
        .map(({ readAt, ...row }) => ({ booking: toChange(row), readAt }))
        .filter(({ booking, readAt }) => isInside(filter, { payload: booking.payload, changedAt: readAt }))
        .map(({ booking }) => booking);
      if (needsMemory(filter))
        await rememberHanded(memory, tables, { name, bookingIds: bookings.map(({ bookingId }) => bookingId) });
      yield bookings;
    }
  }
  return { position, pages: readPages() };
}
