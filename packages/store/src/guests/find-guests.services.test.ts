import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
import { bookingKey } from "../tables/booking-key.ts";
import { readDigestKey } from "./digest-key.ts";
import { findGuestBookings } from "./find-guests.ts";
import { type GuestSearch, toGuestSearch } from "./guest-search.ts";

const { pool } = useTestDatabase();

test("of many bookings, as many are found as are asked for, the newest first", async () => {
  const partners = ["oldest", "older", "newer", "newest"];
  await pool.query(
    `insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence,
       last_sequence, revision, created_at, updated_at)
     select key, gen_random_uuid(), partner, 'trip', 'SAME', 'active', gen_random_uuid(), 1, 1, 1, now(),
       now() + make_interval(secs => place)
     from unnest($1::bytea[], $2::text[]) with ordinality as booking (key, partner, place)`,
    [partners.map((partner) => bookingKey(partner, "trip", "SAME")), partners],
  );
  const search = toGuestSearch("reference", "SAME", undefined) as GuestSearch;
  const find = async (limit?: number) =>
    (await findGuestBookings(pool, await readDigestKey(pool, undefined), search, limit)).map(({ partner }) => partner);
  expect(await find(2)).toEqual(["newest", "newer"]);
  expect(await find()).toEqual(partners.toReversed());
});
