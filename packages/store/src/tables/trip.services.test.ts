import { randomUUID } from "node:crypto";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { describe, expect, test } from "vitest";
import { inTransaction } from "../connect/transaction.ts";
import { insertEvents } from "./booking-events.ts";
import { type BookingToSave, insertBookings, updateBookings } from "./save-bookings.ts";
import { readTrip } from "./trip.ts";

const { pool } = useTestDatabase();

const field = {
  arrival: "consumerTripArrivalDate",
  return: "consumerTripReturnDate",
  country: "consumerTripDestinationCountryName",
  airport: "consumerTripDestinationAirportCode",
} as const;
const columns =
  "arrival_date::text, arrival_at::text, return_date::text, return_at::text, destination_country, destination_airport";

let number = 0;
async function save(payload: object, change: Partial<BookingToSave> = {}): Promise<BookingToSave> {
  number += 1;
  const [id, text, at] = [randomUUID(), JSON.stringify(payload), new Date()];
  const identity = { partner: "acme", referenceKind: "trip", reference: `T-${number}` } as const;
  const booking: BookingToSave = {
    ...{
      ...identity,
      bookingKey: Buffer.from(identity.reference),
      bookingId: randomUUID(),
      revision: 1,
      keepsPayload: false,
    },
    trip: readTrip(payload as Record<string, unknown>),
    ...change,
    state: {
      ...{ state: "active", eventId: id, sequence: number, lastSequence: number, createdAt: at, updatedAt: at },
      ...{ content: { digest: "00".repeat(16), eventId: id, newestKeylessSequence: null }, deletedAt: null },
    },
  };
  await inTransaction(pool, async (client) => {
    await insertEvents(client, [
      {
        ...{ ...booking, id, kind: "create", sequence: number, idempotencyKey: null, payload: text },
        ...{
          contentDigest: "00".repeat(16),
          outcome: "created",
          duplicateOf: null,
          warnings: [],
          after: null,
          receivedAt: at,
        },
      },
    ]);
    if (booking.revision === 1) await insertBookings(client, [booking]);
    else await updateBookings(client, [booking]);
  });
  return booking;
}

const stored = async ({ bookingKey }: BookingToSave) =>
  (await pool.query(`select ${columns} from bookings where booking_key = $1`, [bookingKey])).rows[0];
const readBySql = async (payload: object) =>
  (await pool.query(`select ${columns} from booking_trip($1)`, [JSON.stringify(payload)])).rows[0];

describe("the worker writes what SQL reads from the same payload", () => {
  test.each<[keyof typeof field, unknown[]]>([
    [
      "arrival",
      [
        ...["2026-06-14", "2026-06-14T23:30:00-05:00", "2028-02-29T07:27:17.123456Z", "2026-06-14T07:27+1400"],
        ...["1900-01-01T00:00:00-09:30", "2999-12-31T23:59:59.9999999Z", "2026-06-14T07:27:17.0000005+0000"],
        ...["1999-12-31T23:59:59.0000015-00:30", "2026-06-14T07:27:17.123456789-11:45", "2999-12-31", "1900-02-28"],
        // A partner may not send these, and SQL reads some.
        ...["1812-06-24", "2026-06-14T07:27:17", "2026-02-31", "2026-06-14T07:27:17+16:00", "soon", null],
      ],
    ],
    ["return", ["2026-06-14", "2026-06-14T07:27:17Z"]],
    [
      "country",
      ["Spain", "  Côte d'Ivoire ", " ", "\tSpain", "😀".repeat(100), "😀".repeat(101), "x".repeat(101), null],
    ],
    ["airport", ["BCN", "bcn", " Bcn ", "\tBCN", "EGLL", "B1N", "ſſſ", "ıii", null]],
  ])("%s", async (name, values) => {
    for (const value of values) {
      const payload = { [field[name]]: value };
      expect([value, await stored(await save(payload))]).toEqual([value, await readBySql(payload)]);
    }
  });

  test("all of them", async () => {
    const payload = {
      ...{ [field.arrival]: "2026-06-14T23:30:00-05:00", [field.return]: "2026-06-20" },
      ...{ [field.country]: "Spain", [field.airport]: "bcn" },
    };
    expect(await stored(await save(payload))).toEqual({
      ...{ arrival_date: "2026-06-14", arrival_at: "2026-06-15 04:30:00+00", return_date: "2026-06-20" },
      ...{ return_at: null, destination_country: "Spain", destination_airport: "BCN" },
    });
  });
});

test("an update writes them again, with a payload of this transaction or of an earlier one", async () => {
  const { bookingKey } = await save({ [field.arrival]: "2026-06-14" });
  const payload = { [field.arrival]: "2026-06-15", [field.airport]: "MAD" };
  expect(await stored(await save(payload, { bookingKey, revision: 2 }))).toEqual(await readBySql(payload));
  const earlier = { [field.arrival]: "2026-06-16" };
  expect(await stored(await save(earlier, { bookingKey, revision: 3, trip: null }))).toEqual(await readBySql(earlier));
});

test("a kept payload keeps them", async () => {
  const { bookingKey } = await save({ [field.arrival]: "2026-06-14" });
  const kept = await save({}, { bookingKey, revision: 2, keepsPayload: true });
  expect(await stored(kept)).toMatchObject({ arrival_date: "2026-06-14" });
});

test("an update that leaves them as they are touches no index", async () => {
  const booking = await save({ [field.arrival]: "2026-06-14", [field.country]: "Spain", [field.airport]: "bcn" });
  await inTransaction(pool, async (client) => {
    const countHot = async () =>
      (await client.query("select pg_stat_get_xact_tuples_hot_updated('bookings'::regclass)::int as count")).rows[0]
        .count;
    const before = await countHot();
    await updateBookings(client, [{ ...booking, revision: 2, state: { ...booking.state, lastSequence: 99 } }]);
    expect(await countHot()).toBe(before + 1);
  });
});
