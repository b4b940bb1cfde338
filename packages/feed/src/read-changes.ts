import { type BookingInput, parseJson, type ReferenceKind } from "@booking-events/schema";
import type { FeedChange, Queryable } from "@booking-events/store";
import { FeedGapError } from "./errors.ts";
import type { FeedTables } from "./tables.ts";

/** A change of a booking. */
export interface BookingChange {
  /** The place in the feed. */
  id: number;
  /**
   * The booking's key in your own tables: a random UUID that each change of it has, and that it keeps when it is erased.
   */
  bookingId: string;
  partner: string;
  /** Trips and consumers with the same reference are different bookings. */
  referenceKind: ReferenceKind;
  /** Null: the booking has been erased, by this change or a later one. */
  reference: string | null;
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
  /** What the booking holds. Null: nothing. Delete what you keep of it. */
  payload: BookingInput | null;
  /**
   * What `payload` is, or why it is null:
   *
   * - `as-changed`: what the booking held after this change.
   * - `current`: the log no longer has that, so this is what the booking holds now. Later changes lead to it.
   * - `deleted`: this change has deleted the booking.
   * - `erased`: the booking has been erased, by this change or a later one.
   * - `removed`: the log no longer has it, and the booking has been deleted since.
   */
  payloadState: "as-changed" | "current" | "deleted" | "erased" | "removed";
  /** ISO alpha-2: where a phone number of `payload` without a calling code is. Null: it is not known. */
  defaultCountry: string | null;
  /** What the booking held before. Null: see `previousPayloadState`. */
  previousPayload: BookingInput | null;
  /**
   * What `previousPayload` is, or why it is null:
   *
   * - `as-changed`: what the booking held after the change before.
   * - `none`: there was no booking, or it was deleted.
   * - `erased`: the booking has been erased.
   * - `removed`: the log no longer has it.
   */
  previousPayloadState: "as-changed" | "none" | "erased" | "removed";
}

/**
 * Reads changes by their ids. Applying all changes in order gives every booking's state. A later change of a booking
 * overrides an earlier one, even if its sequence is lower: it corrects the booking after a late event.
 *
 * @param changes.name the reader's
 * @param changes.ids in order. Each change brings two payloads of up to 64 KiB
 * @throws FeedGapError if one has been removed meanwhile
 */
export async function readChanges(
  client: Queryable,
  tables: FeedTables,
  { name, ids }: { name: string; ids: number[] },
): Promise<BookingChange[]> {
  const [first] = ids;
  if (first === undefined) return [];
  const page = `select * from ${tables.changes} where id = any($1::bigint[])`;
  const { rows } = await client.query<ChangeRow>(`${selectChanges(tables, page)} order by id`, [ids]);
  if (rows.length < ids.length) throw new FeedGapError(name, first - 1, "changes were removed while they were read.");
  return rows.map(toChange);
}

/** @param page a statement that selects rows of booking_changes */
export const selectChanges = (tables: FeedTables, page: string) => `
  select id::float8 as id, booking_id as "bookingId", partner, reference_kind as "referenceKind", reference, revision,
    change, event_id as "eventId", sequence::float8 as sequence, previous_event_id as "previousEventId",
    changed_at as "changedAt", state as "payloadState", previous_state as "previousPayloadState",
    case state when 'as-changed' then logged::text when 'current' then stored::text end as payload,
    case when state in ('as-changed', 'current') then default_country end as "defaultCountry",
    case previous_state when 'as-changed' then previously_logged::text end as "previousPayload"
  from (${withContents(tables, page)}) as changes`;

/**
 * The log drops events by the month of their receipt, and the feed changes by the time at which they were made, so a
 * change may have lost its event. Then the booking itself tells what it holds. It is looked up only in that case.
 */
const withContents = ({ events, bookings }: FeedTables, page: string) => `
       select page.*, event.payload as logged, previous.payload as previously_logged, booking.payload as stored,
         coalesce(event.default_country, booking.default_country) as default_country,
         case
           when page.reference is null then 'erased'
           when page.change = 'deleted' then 'deleted'
           when event.payload is not null then 'as-changed'
           when booking.payload is not null then 'current'
           else 'removed'
         end as state,
         case
           when page.change in ('created', 'recreated') or page.previous_event_id is null or previous.kind = 'delete'
             then 'none'
           when page.reference is null then 'erased'
           when previous.payload is not null then 'as-changed'
           else 'removed'
         end as previous_state
       from (${page}) as page
       left join ${events} as event on event.id = page.event_id
       left join ${events} as previous on previous.id = page.previous_event_id
       left join lateral (
         select payload, default_country from ${bookings}
         where event.payload is null and page.change <> 'deleted' and page.reference is not null
           and booking_id = page.booking_id and state = 'active'
         limit 1
       ) as booking on true`;

/** A row as any client of pg gives it: its own parser of JSON may give wrong names. */
export type ChangeRow = Omit<BookingChange, "payload" | "previousPayload"> &
  Record<"payload" | "previousPayload", string | null>;

export function toChange(row: ChangeRow): BookingChange {
  return { ...row, payload: toPayload(row.payload), previousPayload: toPayload(row.previousPayload) };
}

/**
 * The log has only payloads that satisfied the contract when they were received. Where a release changed it, older ones
 * may differ from the type.
 */
export function toPayload(json: string | null): BookingInput | null {
  return json === null ? null : (parseJson(json) as BookingInput);
}
