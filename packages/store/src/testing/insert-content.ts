import type { Queryable } from "../connect/queryable.ts";
import { deriveColumns, type SentContent, toColumnName } from "../tables/content-columns.ts";

interface BookingWithContent extends Partial<SentContent> {
  reference: string;
  payload: SentContent["payload"];
  partner?: string;
  state?: "active" | "deleted";
}

/** Inserts bookings with contents, and without events. */
export async function insertContents(client: Queryable, bookings: BookingWithContent[]): Promise<void> {
  const rows = bookings.map(({ reference, payload, partner = "acme", state = "active", defaultCountry = null }) => {
    const columns = deriveColumns({ partner, referenceKind: "trip" }, { payload, defaultCountry });
    const named = Object.entries(columns).map(([key, value]) => [toColumnName(key), value]);
    return { partner, reference, state, payload, ...Object.fromEntries(named) };
  });
  await client.query(
    `insert into bookings
     select booking.*
     from jsonb_array_elements($1::jsonb) as row, jsonb_populate_record(null::bookings, row || jsonb_build_object(
       'booking_key', sha256(convert_to(row ->> 'partner' || ' ' || (row ->> 'reference'), 'UTF8')),
       'booking_id', gen_random_uuid(), 'reference_kind', 'trip', 'event_id', gen_random_uuid(), 'sequence', 1,
       'last_sequence', 1, 'revision', 1, 'created_at', now(), 'updated_at', now(), 'guest_hashes', '{}'::bigint[]
     )) as booking`,
    [JSON.stringify(rows)],
  );
}
