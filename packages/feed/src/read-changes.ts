import { type BookingInput, parseJson, type ReferenceKind } from "@booking-events/schema";
import type { FeedChange, Queryable } from "@booking-events/store";
import type { FeedTables } from "./tables.ts";

/** A change of a booking. */
export interface BookingChange {
  /** The place in the feed. */
  id: number;
  partner: string;
  /** Trips and consumers with the same reference are different bookings. */
  referenceKind: ReferenceKind;
  reference: string;
  /** Numbers the changes of the booking: 1, 2, 3 and so on. */
  revision: number;
  change: FeedChange;
  /** The event that decided the new state. */
  eventId: string;
  /** The place of that event in the order of receipt, in microseconds. */
  sequence: number;
  /** The event of the booking's change before; null: there was no booking. */
  previousEventId: string | null;
  /** When the transaction that changed the booking began. */
  changedAt: Date;
  /** What the booking holds from now on; null: it is deleted or erased, or the log no longer has the event. */
  payload: BookingInput | null;
  /** What the booking held before; null: it was deleted or unknown, or the log no longer has the event. */
  previousPayload: BookingInput | null;
}

/**
 * Reads a page of the feed. Applying the changes in order gives every booking's state. A later change of a booking
 * overrides an earlier one, even if its sequence is lower: it corrects the booking after a late event.
 *
 * @param page.after the id after which the page begins
 * @param page.limit how many changes the page has at most. Each brings two payloads of up to 64 KiB
 * @returns the changes in the order of their ids
 */
export async function readChanges(
  client: Queryable,
  { after, limit, tables }: { after: number; limit: number; tables: FeedTables },
): Promise<BookingChange[]> {
  const { rows } = await client.query<ChangeRow>(
    `select page.id::float8 as id, page.partner, page.reference_kind as "referenceKind", page.reference, page.revision,
       page.change, page.event_id as "eventId", page.sequence::float8 as sequence,
       page.previous_event_id as "previousEventId", page.changed_at as "changedAt",
       case when page.change not in ('deleted', 'erased') then event.payload::text end as payload,
       case when previous.kind <> 'delete' then previous.payload::text end as "previousPayload"
     from (select * from ${tables.changes} where id > $1 order by id limit $2) as page
     left join ${tables.events} as event on event.id = page.event_id
     left join ${tables.events} as previous on previous.id = page.previous_event_id
     order by page.id`,
    [after, limit],
  );
  return rows.map(toChange);
}

/** A row as any client of pg gives it: its own parser of JSON may give wrong names. */
type ChangeRow = Omit<BookingChange, "payload" | "previousPayload"> &
  Record<"payload" | "previousPayload", string | null>;

function toChange(row: ChangeRow): BookingChange {
  return { ...row, payload: toPayload(row.payload), previousPayload: toPayload(row.previousPayload) };
}

/**
 * The log has only payloads that satisfied the contract when they were received. Where a release changed it, older ones
 * may differ from the type.
 */
function toPayload(json: string | null): BookingInput | null {
  return json === null ? null : (parseJson(json) as BookingInput);
}
