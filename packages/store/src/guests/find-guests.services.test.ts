import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { bookingKey } from "../tables/booking-key.ts";
import { readDigestKey } from "./digest-key.ts";
import { findGuestBookings } from "./find-guests.ts";
import { hashContacts, tooManyHashes } from "./guest-contacts.ts";
import { type GuestSearch, toGuestSearch } from "./guest-search.ts";

const { pool } = useTestDatabase();

beforeEach(() => pool.query("truncate bookings"));

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

test("neither newer bookings with similar numbers, nor those of large groups, hide the one with the number", async () => {
  const key = await readDigestKey(pool, undefined);
  // More than are compared at once.
  const limit = 60;
  const phones = ["+44 7911 123456", ...Array(limit).fill("7911 123456"), ...Array(10 * limit).fill("+34 600 000000")];
  const payloads = phones.map((consumerPhone) => ({ consumerPhone }));
  const hashes = payloads.map((payload, place) =>
    place > limit ? [tooManyHashes] : hashContacts(key, { payload, defaultCountry: null }),
  );
  await pool.query(
    `insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence,
       last_sequence, revision, created_at, updated_at, payload, guest_hashes)
     select key, gen_random_uuid(), 'acme', 'trip', 'TRIP-' || place, 'active', gen_random_uuid(), 1, 1, 1, now(),
       now() + make_interval(secs => place), payload, hashes::bigint[]
     from unnest($1::bytea[], $2::jsonb[], $3::text[]) with ordinality as booking (key, payload, hashes, place)`,
    [
      phones.map((_, place) => bookingKey("acme", "trip", `TRIP-${place + 1}`)),
      payloads,
      hashes.map((each) => `{${each.join()}}`),
    ],
  );
  const search = toGuestSearch("phone", "+44 7911 123456", undefined) as GuestSearch;
  const found = await findGuestBookings(pool, key, search, limit);
  expect(found.filter(({ closeness }) => closeness === "exact")).toMatchObject([{ reference: "TRIP-1" }]);
});
