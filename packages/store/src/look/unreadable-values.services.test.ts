import { useTestDatabase } from "@booking-events/harness/test-database";
import { type BookingPayload, bookingFields, findWarnings, validatePayload } from "@booking-events/schema";
import { normaliseBooking } from "@booking-events/schema/normalise";
import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { insertContents } from "../testing/insert-content.ts";

const { pool } = useTestDatabase();

beforeEach(() => pool.query("truncate bookings"));

/** Returns, for each payload, the fields that `booking_details_unreadable` counts. Each payload gets its own partner. */
async function readUnreadableFields(payloads: BookingPayload[]): Promise<string[][]> {
  await insertContents(
    pool,
    payloads.map((payload, index) => ({ partner: String(index), reference: "T", payload })),
  );
  const { rows } = await pool.query<{ partner: string; field: string }>(
    "select partner, field from booking_details_unreadable",
  );
  const fields = payloads.map((): string[] => []);
  for (const { partner, field } of rows) fields[Number(partner)]?.push(field);
  return fields.map((each) => each.sort());
}

/** The fields that the worker reads, by the column that is null if it can't. */
const readFields = {
  consumerPhone: "consumerPhone",
  consumerEmail: "consumerEmail",
  consumerLanguage: "consumerLanguage",
  consumerNationality: "consumerNationality",
  consumerCurrency: "consumerCurrency",
  consumerTripIsInternational: "consumerTripIsInternational",
  consumerTripIsRegional: "consumerTripIsRegional",
  consumerTripIsLocal: "consumerTripIsLocal",
  consumerTripArrivalDate: "consumerTripArrivalDate",
  consumerTripReturnDate: "consumerTripReturnDate",
  consumerTripDepartureCountryName: "consumerTripDepartureCountryCode",
  consumerTripDepartureAirportCode: "consumerTripDepartureAirportCode",
  consumerTripDestinationCountryName: "consumerTripDestinationCountryCode",
  consumerTripDestinationAirportCode: "consumerTripDestinationAirportCode",
  agentTimezone: "agentTimezone",
  agentPhoneNumber: "agentPhoneNumber",
  agentEmail: "agentEmail",
} as const;

function findUnreadableFields(payload: BookingPayload): string[] {
  const normalised = normaliseBooking(payload, { defaultCountry: null });
  return Object.entries(readFields)
    .filter(([field, column]) => isSent(payload[field]) && normalised[column] === null)
    .map(([field]) => field)
    .sort();
}

function isSent(value: unknown): boolean {
  return typeof value === "string" ? value.replace(invisible, "") !== "" : value !== undefined && value !== null;
}

const invisible = /[\s\p{Default_Ignorable_Code_Point}]/gu;

/** What any field may be sent as, readable or not. */
const anyValue = fc.oneof(
  fc.constantFrom("true", "EUR", "GB", "en", "LIS", "2026-06-14", "+442071838750", "ada@example.com", "Europe/London"),
  fc.string({ unit: fc.constantFrom(..." \t\n\v\f\r\u0085\u00a0\u1680\u180e\u200b\u2003\u2028\u202f\u3000\ufeffx") }),
  fc.string(),
  fc.constantFrom(null, 0, false, [], {}, [" "]),
);
const anyPayload = fc.dictionary(fc.constantFrom(...bookingFields.map(({ name }) => name)), anyValue);

test("the view counts every value that was sent and whose column is null", async () => {
  const payloads = fc.sample(anyPayload, { numRuns: 2_000, seed: 17 });
  const unreadable = await readUnreadableFields(payloads);
  expect(unreadable).toEqual(payloads.map(findUnreadableFields));
  const counted = new Set(unreadable.flat());
  expect([...counted].sort()).toEqual(Object.keys(readFields).sort());
});

test("a value of an accepted payload gets a warning if and only if the view counts it", async () => {
  const accepted = fc.sample(anyPayload, { numRuns: 6_000, seed: 18 }).flatMap((sent) => {
    const result = validatePayload("create", { ...sent, consumerTripPartnerExternalReference: "T" });
    return result.success ? [result.payload] : [];
  });
  expect(accepted.length).toBeGreaterThan(500);
  const warned = accepted.map((payload) =>
    findWarnings("create", payload, { defaultCountry: null })
      .filter(({ code }) => code.startsWith("unreadable-"))
      .map(({ field }) => field)
      .sort(),
  );
  const counted = await readUnreadableFields(accepted);
  // The name of a country in any language is fine, but not each has a code.
  const isOfCountry = (field: string) => field.endsWith("CountryName");
  const others = (fields: string[]) => fields.filter((field) => !isOfCountry(field));
  expect(counted.map(others)).toEqual(warned.map(others));
  for (const [index, fields] of warned.entries())
    expect(counted[index]).toEqual(expect.arrayContaining(fields.filter(isOfCountry)));
  expect(new Set(warned.flat()).size).toBeGreaterThan(12);
});

test("a text in which nothing can be seen is no value", async () => {
  const codes = Array.from({ length: 0xe_2000 }, (_, index) => index + 1).filter(
    (code) => code < 0xd800 || code > 0xdfff,
  );
  const characters = codes.map((code) => String.fromCodePoint(code));
  const isInvisible = characters.map((character) => character.replace(invisible, "") === "");
  const blank = characters.filter((_, index) => isInvisible[index]).join("");
  const beside = characters.filter(
    (_, index) => !isInvisible[index] && (isInvisible[index - 1] || isInvisible[index + 1]),
  );
  expect([blank.length > 4_000, beside.length > 30]).toEqual([true, true]);

  const unreadable = await readUnreadableFields([blank, ...beside].map((consumerPhone) => ({ consumerPhone })));

  expect(unreadable).toEqual([[], ...beside.map(() => ["consumerPhone"])]);
});
