import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import {
  beginErasure,
  bookingKey,
  type DigestKey,
  eraseBooking,
  findGuestBookings,
  maintain,
  openDigestKey,
  renormaliseBookings,
  toGuestSearch,
} from "@booking-events/store";
import { contentColumns } from "@booking-events/store/tables/content-columns";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";

const { pool } = useTestDatabase({ maxConnections: 4 });
let digestKey: DigestKey;

beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
});
beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes, erasures"));

const national = "07911 123456";

/** The country is the partner's when the event is received. */
function event(number: number, country: string | null, fields: object = {}, kind: EventKind = "update"): EventEnvelope {
  const payload = { consumerTripPartnerExternalReference: "T-1", consumerPhone: national, ...fields };
  return sampleEvent(number, { kind, defaultCountry: country, payload });
}

async function apply(...events: EventEnvelope[]): Promise<void> {
  await applyEvents(pool, events, { digestKey, duplicateWindowMs: 72 * 3_600_000, isAlone: true });
}

async function readRow() {
  const { rows } = await pool.query("select to_jsonb(bookings) as row from bookings");
  return rows[0]?.row;
}

const asBritish = { consumer_phone: "+447911123456", consumer_phone_is_assumed: true, default_country: "GB" };
const asUnknown = { consumer_phone: null, consumer_phone_is_assumed: null, default_country: null };

describe("a number without a country code is read by the partner's country when its event was received", () => {
  test("whatever the order of deliveries", async () => {
    const [british, unknown, deletion] = [
      event(1, "GB"),
      event(2, null, { agentGivenName: "Sam" }),
      event(3, "FR", {}, "delete"),
    ];
    await apply(unknown);
    expect(await readRow()).toMatchObject(asUnknown);
    await apply(british);
    expect(await readRow()).toMatchObject(asUnknown);
    await apply(deletion);
    expect(await readRow()).toMatchObject({ state: "deleted", ...asUnknown });
  });

  test("also if a late event makes an earlier content the current one again", async () => {
    const keyed = (number: number, country: string | null, fields: object) => ({
      ...event(number, country, fields),
      idempotencyKey: "key",
    });
    const [british, unknown] = [event(2, "GB"), keyed(3, null, { agentGivenName: "Sam" })];
    await apply(british, unknown);
    expect(await readRow()).toMatchObject(asUnknown);
    // The third event turns out to repeat this one, so it no longer counts, and the second decides.
    await apply(keyed(1, "FR", { agentGivenName: "Sam" }));
    expect(await readRow()).toMatchObject({ event_id: british.eventId, ...asBritish });
  });

  test.each([
    ["one batch", (events: EventEnvelope[]) => [events]],
    ["a batch for each", (events: EventEnvelope[]) => events.map((each) => [each])],
    ["the wrong order", (events: EventEnvelope[]) => events.toReversed().map((each) => [each])],
  ])("the same content after the country has changed, in %s", async (_, batchesOf) => {
    for (const batch of batchesOf([event(1, null), event(2, "GB")])) await apply(...batch);
    expect(await readRow()).toMatchObject(asBritish);
  });

  test("and renormalising reads it by that country again", async () => {
    await apply(event(1, "GB"));
    await pool.query("update bookings set consumer_phone = null, consumer_phone_is_assumed = null");
    for await (const page of renormaliseBookings(pool, digestKey, { isDryRun: false }))
      expect(page).toEqual({ bookings: 1, changed: 1, busy: 0 });
    expect(await readRow()).toMatchObject(asBritish);
    await apply(event(2, "GB", { agentGivenName: "Sam" }));
    for await (const page of renormaliseBookings(pool, digestKey, { isDryRun: true }))
      expect(page).toEqual({ bookings: 1, changed: 0, busy: 0 });
  });
});

describe("no column is left that follows from the payload", () => {
  const all = {
    ...{ consumerPartnerExternalReference: "C-1", consumerEmail: "ada@example.com", consumerLanguage: "en" },
    ...{ consumerNationality: "GB", consumerCurrency: "EUR", consumerTripIsInternational: "1" },
    ...{ consumerTripIsRegional: "1", consumerTripIsLocal: "1", consumerTripArrivalDate: "2026-06-14T07:27:17Z" },
    ...{ consumerTripReturnDate: "2026-06-14T07:27:17Z", consumerTripDepartureCountryName: "GB" },
    ...{ consumerTripDepartureAirportCode: "LHR", consumerTripDestinationCountryName: "PT" },
    ...{ consumerTripDestinationAirportCode: "LIS", agentTimezone: "Europe/London", agentPhoneNumber: national },
    agentEmail: "sam@example.com",
  };
  const nullColumns = async () => {
    const row = await readRow();
    return contentColumns.map(({ name }) => name).filter((name) => row[name] === null);
  };
  const names = contentColumns.map(({ name }) => name);

  beforeEach(async () => {
    await apply(event(1, "GB", all));
    expect(await nullColumns()).toEqual([]);
  });

  test("once the content of a deleted booking is removed", async () => {
    await apply(event(2, "GB", all, "delete"));
    expect(await nullColumns()).toEqual([]);
    await pool.query("update bookings set deleted_at = now() - interval '2 days'");
    const rules = { retentionDays: 0, deletedRetentionDays: 1, deadLetterRetentionDays: 0 };
    await maintain(pool, rules, { findClockProblem: async () => null });
    expect(await nullColumns()).toEqual(names);
  });

  test("once the guest is erased", async () => {
    const booking = {
      ...({ partner: "acme", referenceKind: "trip", reference: "T-1" } as const),
      event: { id: event(1, null).eventId, sequence: 1, receivedAt: new Date() },
    };
    const erasureId = await beginErasure(pool, { by: "test", reason: "a test", search: "email" });
    await eraseBooking(pool, digestKey, booking, { erasureId, by: "test" });
    expect(await nullColumns()).toEqual(names);
  });
});

describe("a guest is found", () => {
  async function find(by: "email" | "phone", value: string): Promise<string[]> {
    const search = toGuestSearch(by, value, undefined);
    const found = search === undefined ? [] : await findGuestBookings(pool, digestKey, search);
    return found.map(({ reference, closeness }) => `${reference} ${closeness}`).sort();
  }
  const book = (number: number, country: string | null, fields: object) =>
    apply(event(number, country, { consumerTripPartnerExternalReference: `T-${number}`, ...fields }));

  test("by every number that any reader would call the same, and near misses apart", async () => {
    await book(1, null, { consumerPhone: "+44 (0)7911 123456" });
    await book(2, "GB", { consumerPhone: "07911 123456" });
    await book(3, null, { consumerPhone: "0044 7911-123456 ext. 12" });
    await book(4, null, { consumerPhone: "+351 912 345 678 / +44 7911 123456" });
    await book(5, null, { consumerPhone: "07911 123456", consumerNationality: "GB" });
    await book(6, null, { consumerPhone: "07911 123456" });
    await book(7, "FR", { consumerPhone: "+1 212 911 23456" });
    await book(8, null, { consumerPhone: "+44 7911 123457" });
    const british = ["T-1 exact", "T-2 exact", "T-3 exact", "T-4 exact", "T-5 exact"];
    expect(await find("phone", "+447911123456")).toEqual([...british, "T-6 near"]);
    expect(await find("phone", "00447911123456")).toEqual([...british, "T-6 near"]);
    // As it was written, it is the same, whatever country it is of.
    expect(await find("phone", "07911 123 456")).toEqual([
      "T-1 near",
      "T-2 exact",
      "T-3 near",
      "T-4 near",
      "T-5 exact",
      "T-6 exact",
    ]);
    expect(await find("phone", "+351912345678")).toEqual(["T-4 exact"]);
  });

  test("by an address, whatever stands around it", async () => {
    await book(1, null, { consumerEmail: "Ada Lovelace <Ada@Example.com>" });
    await book(2, null, { consumerEmail: "mailto:ada@example.com" });
    await book(3, null, { consumerEmail: "ada@example.com; grace@example.com" });
    await book(4, null, { consumerEmail: "ada@example.org" });
    await book(5, null, { consumerEmail: "at home" });
    const found = ["T-1 exact", "T-2 exact", "T-3 exact"];
    for (const value of ["ada@example.com", " ADA@EXAMPLE.COM ", "mailto:Ada@example.com", "Ada <ada@example.com>"])
      expect([value, await find("email", value)]).toEqual([value, found]);
    expect(await find("email", "At home")).toEqual(["T-5 exact"]);
  });

  test("by the key that a booking of the consumer's reference would have", async () => {
    await book(1, null, { consumerPartnerExternalReference: "C-1\u200b " });
    const search = toGuestSearch("reference", " C-1", undefined);
    const found = search === undefined ? [] : await findGuestBookings(pool, digestKey, search);
    expect(found.map(({ reference }) => reference)).toEqual(["T-1"]);
    expect(bookingKey("acme", "consumer", "C-1").toString("hex").slice(0, 12)).toBe(
      Number((await readRow()).consumer_hash)
        .toString(16)
        .padStart(12, "0"),
    );
  });
});
