import { randomUUID } from "node:crypto";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { BookingPayload } from "@booking-events/schema";
import { normaliseBooking } from "@booking-events/schema/normalise";
import { expect, test } from "vitest";
import { inTransaction } from "../connect/transaction.ts";
import { insertEvents } from "./booking-events.ts";
import { bookingKey, consumerHash } from "./booking-key.ts";
import { contentColumns, deriveColumns, toColumnName } from "./content-columns.ts";
import { insertBookings, type PlannedBooking, readLogged, updateBookings } from "./save-bookings.ts";

const { pool } = useTestDatabase();

const full: BookingPayload = {
  ...{
    consumerPartnerExternalReference: " C-1",
    consumerPhone: "+33 6 12 34 56 78",
    consumerEmail: " ada@Example.com",
  },
  ...{ consumerLanguage: "en", consumerNationality: "FR", consumerCurrency: "EUR", consumerTripIsLocal: "no" },
  ...{ consumerTripIsInternational: "true", consumerTripIsRegional: "0" },
  ...{ consumerTripArrivalDate: "2026-06-14T23:30:00-05:00", consumerTripReturnDate: "2026-06-20T07:27:17.335Z" },
  ...{ consumerTripDepartureCountryName: "FR", consumerTripDepartureAirportCode: "cdg" },
  ...{ consumerTripDestinationCountryName: "ES", consumerTripDestinationAirportCode: "bcn" },
  ...{ agentTimezone: "Europe/Paris", agentPhoneNumber: "+33 1 42 68 53 00", agentEmail: "sam@example.com" },
};

let number = 0;
/** Saves a booking with an event that sent the payload. */
async function save(
  payload: BookingPayload,
  change: Partial<PlannedBooking> = {},
  defaultCountry: string | null = "FR",
): Promise<PlannedBooking> {
  number += 1;
  const [id, at] = [randomUUID(), new Date()];
  const identity = { partner: "acme", referenceKind: "trip", reference: `T-${number}` } as const;
  const booking: PlannedBooking = {
    ...{
      ...identity,
      bookingKey: bookingKey("acme", "trip", identity.reference),
      bookingId: randomUUID(),
      revision: 1,
    },
    newContent: { payload, defaultCountry },
    ...change,
    state: {
      ...{ state: "active", eventId: id, sequence: number, lastSequence: number, createdAt: at, updatedAt: at },
      ...{ content: { digest: "00".repeat(16), eventId: id, newestKeylessSequence: null }, deletedAt: null },
    },
  };
  await inTransaction(pool, async (client) => {
    const event = { ...booking, id, kind: "create", sequence: number, idempotencyKey: null, defaultCountry } as const;
    const record = { contentDigest: "00".repeat(16), outcome: "created", duplicateOf: null, warnings: [] } as const;
    await insertEvents(client, [
      { ...event, ...record, payload: JSON.stringify(payload), after: null, receivedAt: at },
    ]);
    const saved = await readLogged(client, [booking]);
    if (booking.revision === 1) await insertBookings(client, saved);
    else await updateBookings(client, saved);
  });
  return booking;
}

const names = contentColumns.map(({ name }) => name);
const stored = async ({ bookingKey: key }: PlannedBooking) =>
  (await pool.query(`select to_jsonb(bookings) as row from bookings where booking_key = $1`, [key])).rows[0].row;

/** As JSON of PostgreSQL has them. */
function columnsOf(payload: BookingPayload, defaultCountry: string | null = "FR"): object {
  const columns = deriveColumns({ partner: "acme", referenceKind: "trip" }, { payload, defaultCountry });
  return Object.fromEntries(
    Object.entries(columns).map(([key, value]) => [
      toColumnName(key),
      key.endsWith("At") && typeof value === "string" ? value.replace(/(\.000)?Z$/, "+00:00") : value,
    ]),
  );
}

test("each column that follows from the payload is written", async () => {
  const row = await stored(await save(full));
  expect(row).toMatchObject(columnsOf(full));
  expect(names.filter((name) => row[name] === null)).toEqual([]);
  expect(row).toMatchObject({
    ...{ consumer_phone: "+33612345678", consumer_phone_is_assumed: false, consumer_email: "ada@example.com" },
    ...{ consumer_trip_arrival_date: "2026-06-14", consumer_trip_arrival_at: "2026-06-15T04:30:00+00:00" },
    ...{ default_country: "FR", consumer_hash: consumerHash(bookingKey("acme", "consumer", "C-1")) },
  });
});

test("the read model has a column for each value of the schema's normaliser", () => {
  const keys = Object.keys(normaliseBooking({}, { defaultCountry: null }));
  expect(names.toSorted()).toEqual([...keys, "defaultCountry", "consumerHash"].map(toColumnName).toSorted());
});

test("an update writes them again, whether its payload is of this transaction or of the log", async () => {
  const { bookingKey: key } = await save(full);
  const payload: BookingPayload = { consumerTripArrivalDate: "2026-06-15", consumerTripIsLocal: "yes" };
  expect(await stored(await save(payload, { bookingKey: key, revision: 2 }))).toMatchObject(columnsOf(payload));
  const logged = await save(full, { bookingKey: key, revision: 3, newContent: "logged" }, null);
  expect(await stored(logged)).toMatchObject({ payload: full, ...columnsOf(full, null) });
});

test("a payload that was removed from the log leaves nothing", async () => {
  const booking = await save(full);
  await pool.query("update booking_events set payload = null where id = $1", [booking.state.eventId]);
  await updateBookings(pool, await readLogged(pool, [{ ...booking, newContent: "logged" }]));
  const row = await stored(booking);
  expect(names.filter((name) => row[name] !== null)).toEqual([]);
  expect(row.payload).toBeNull();
});

test("a content that is kept keeps them, beside one that is replaced", async () => {
  const [one, other] = [await save(full), await save({})];
  const replaced = { payload: full, defaultCountry: "FR" };
  await updateBookings(pool, [
    { ...one, revision: 2, newContent: "kept" },
    { ...other, revision: 2, newContent: replaced },
  ]);
  expect(await stored(one)).toMatchObject({ revision: 2, payload: full, ...columnsOf(full) });
  expect(await stored(other)).toMatchObject({ revision: 2, payload: {}, ...columnsOf(full) });
});

test("an update that sends the same values touches no index", async () => {
  const booking = await save(full);
  await inTransaction(pool, async (client) => {
    // A row that its page has no room for goes to another page, and is new to every index, whatever was updated.
    const countUpdates = async (): Promise<{ stayed: number; moved: number }> =>
      (
        await client.query(
          `select pg_stat_get_xact_tuples_hot_updated('bookings'::regclass)::int as stayed,
             pg_stat_get_xact_tuples_newpage_updated('bookings'::regclass)::int as moved`,
        )
      ).rows[0];
    for (let revision = 2; revision < 12; revision += 2) {
      const newContent = { payload: full, defaultCountry: "FR" };
      await updateBookings(client, [
        { ...booking, revision, newContent, state: { ...booking.state, lastSequence: 99 } },
      ]);
      await updateBookings(client, [{ ...booking, revision: revision + 1, newContent: "kept" }]);
    }
    const { stayed, moved } = await countUpdates();
    expect(stayed + moved).toBe(10);
    expect(stayed).toBeGreaterThan(5);
  });
});
