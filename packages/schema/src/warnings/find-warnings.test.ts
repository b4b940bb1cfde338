import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BookingInput, bookingFields, type EventKind, findWarnings, maxWarnings, validatePayload } from "../index.ts";
import { bookingInput } from "../testing/index.ts";

const tripName = "consumerTripPartnerExternalReference";
const reference = { [tripName]: "booking-2001" };

function warningsOf(fields: Record<string, unknown>, kind: EventKind = "create") {
  const result = validatePayload(kind, { ...reference, ...fields });
  if (!result.success) throw new Error(JSON.stringify(result.violationList));
  return findWarnings(kind, result.payload);
}

/** The listed fields that an unlisted name is taken for. */
function similarTo(name: string, kind?: EventKind): string[] {
  return warningsOf({ [name]: "x" }, kind).map(({ field }) => field);
}

describe("an unlisted name gets a warning if", () => {
  test.each([
    ["it has another case", "consumerGivenname", "consumerGivenName"],
    ["it is in capitals", "AGENTEMAIL", "agentEmail"],
    ["it has underscores", "consumer_trip_arrival_date", "consumerTripArrivalDate"],
    ["it has hyphens and capitals", "Consumer-Phone", "consumerPhone"],
    ["it has spaces and dots", " consumer.phone ", "consumerPhone"],
    ["it is a name of eight letters with a mistake", "agentMail", "agentEmail"],
    ["a character is missing", "consumerTripDepartureCityNam", "consumerTripDepartureCityName"],
    ["a character is another", "consumerLanguagr", "consumerLanguage"],
    ["two characters are swapped", "consumerNatoinality", "consumerNationality"],
    ["two characters are too many", "consumerCurrencyId", "consumerCurrency"],
    ["it has underscores and a mistake", "consumer_trip_venue_nane", "consumerTripVenueName"],
  ])("%s", (_, name, listed) => {
    expect(warningsOf({ [name]: { any: "value" } })).toEqual([
      {
        message: `The contract does not list this field. If you mean ${listed}, correct the name.`,
        code: "similar-name",
        propertyPath: [name],
        field: listed,
      },
    ]);
  });
});

describe("an unlisted name gets no warning if", () => {
  test.each([
    ["three characters differ", "consumerTripArrivalTime"],
    ["a longer part differs", "consumerTripArrivalAirportCode"],
    ["it has a number, because it is one more field", "consumerPhone2"],
    ["it has nothing in common", "loyaltyTier"],
    ["it is short", "agent"],
    ["it is empty", ""],
    ["it consists of separators", "___"],
    ["it is a property of every object", "constructor"],
    ["it is __proto__", "__proto__"],
    ["it has more than 64 characters", `consumerPhone${"_".repeat(52)}`],
    ["the listed letters are among others", "ourConsumerPhone"],
  ])("%s", (_, name) => {
    expect(similarTo(name)).toEqual([]);
  });
});

test("a name that begins with amp; gets a warning about the form's separator", () => {
  expect(warningsOf({ "amp;consumerPhone": "x", "amp;loyaltyTier": "x", [`amp;${"n".repeat(300)}`]: "x" })).toEqual([
    ...["consumerPhone", "", ""].map((field, index) => ({
      message: expect.stringContaining("joined by &amp;"),
      code: "similar-name",
      propertyPath: [["amp;consumerPhone", "amp;loyaltyTier", `amp;${"n".repeat(251)}…`][index]],
      field,
    })),
  ]);
  expect(similarTo("amp", "delete")).toEqual([]);
});

test("no listed name resembles another one", () => {
  for (const { name } of bookingFields) {
    expect(similarTo(`${name}s`)).toEqual([name]);
    expect(warningsOf({ ...reference, [`${name}_`]: "x" })).toMatchObject([{ field: name }]);
  }
});

test("a deletion gets warnings about its references only", () => {
  expect(similarTo("consumerGivenname", "delete")).toEqual([]);
  expect(warningsOf({ consumerPhone: "07911 123456" }, "delete")).toEqual([]);
  expect(similarTo("consumerTripBookingDate", "delete")).toEqual([]);
  expect(similarTo("consumerpartnerExternalReference", "delete")).toEqual(["consumerPartnerExternalReference"]);
});

test("a name inside an unlisted object gets no warning", () => {
  expect(warningsOf({ details: { consumerGivenname: "Ada" } })).toEqual([]);
});

test("null gets no warning", () => {
  expect(warningsOf({ consumerLanguage: null, consumerNationality: null, consumerCurrency: null })).toEqual([]);
});

test("a warning holds no value", () => {
  const fields = Object.fromEntries(
    bookingFields.filter(({ type }) => type !== "date" && type !== "email").map(({ name }) => [name, "canary-value"]),
  );
  const warnings = warningsOf({ ...fields, consumerGivenname: "canary-value" });
  expect(warnings.length).toBeGreaterThan(10);
  expect(JSON.stringify(warnings)).not.toContain("canary");
});

test("warnings come in the order of the payload's keys, up to their maximum number", () => {
  const fields = { consumerPhone: "x", consumerGivenname: "x", agentPhoneNumber: "x" };
  expect(warningsOf(fields).map(({ propertyPath }) => propertyPath)).toEqual(Object.keys(fields).map((name) => [name]));

  const many = Array.from({ length: 60 }, (_, index) => [`consumerPhone${"_".repeat(index + 1)}`, "x"]);
  expect(warningsOf(Object.fromEntries(many))).toHaveLength(Math.min(maxWarnings, 51));
});

test("of too many warnings, those of listed fields come first, and then those of names sent instead", () => {
  const separated = Array.from({ length: 30 }, (_, index) => [`amp;other${index}`, "x"]);
  const fields = {
    ...Object.fromEntries(separated),
    consumerGivenname: "x",
    consumerPhone: "x",
    agentPhoneNumber: "x",
  };
  const paths = warningsOf(fields).map(({ propertyPath }) => propertyPath[0]);
  expect(paths).toHaveLength(maxWarnings);
  expect(paths.slice(0, 4)).toEqual(["consumerPhone", "agentPhoneNumber", "consumerGivenname", "amp;other0"]);
});

test("only the first 50 unlisted names are compared with listed ones", () => {
  const others = Array.from({ length: 49 }, (_, index) => [`other${index}`, "x"]);
  expect(warningsOf({ ...Object.fromEntries(others), consumerGivenname: "x" })).toHaveLength(1);
  expect(warningsOf({ ...Object.fromEntries(others), other50: "x", consumerGivenname: "x" })).toEqual([]);
  // Values are judged even so.
  expect(warningsOf({ ...Object.fromEntries(others), other50: "x", consumerPhone: "x" })).toHaveLength(1);
});

test("an answer does not depend on the names that came before", () => {
  const names = Array.from({ length: 2_500 }, (_, index) => `consumer${"abcdefghij"[index % 10]}Phone${index}`);
  for (const name of ["consumer_phone", ...names, "consumer_phone", ...names, "consumer_phone"]) {
    expect(similarTo(name)).toEqual(name === "consumer_phone" ? ["consumerPhone"] : []);
  }
  expect(similarTo("consumer_trip_departure_flight_number")).toEqual(["consumerTripDepartureFlightNumber"]);
});

test("any valid payload can be looked at", () => {
  void fc.assert(
    fc.property(bookingInput(), fc.constantFrom("create", "update", "delete" as const), (payload, kind) => {
      for (const { propertyPath, field } of findWarnings(kind, payload)) {
        expect(Object.hasOwn(payload, propertyPath[0] ?? "") || field === tripName).toBe(true);
        expect(Object.hasOwn(BookingInput.entries, field)).toBe(true);
      }
    }),
  );
});
