import { describe, expect, test } from "vitest";
import { type EventKind, findWarnings, validatePayload } from "../index.ts";
import { namesByMeaning } from "./names-by-meaning.ts";

/** The listed fields that the payload's unlisted names are taken for. */
function takenFor(fields: Record<string, unknown>, kind: EventKind = "create"): string[] {
  const result = validatePayload(kind, { consumerPartnerExternalReference: "C-1", ...fields });
  if (!result.success) throw new Error(JSON.stringify(result.violationList));
  return findWarnings(kind, result.payload).flatMap(({ code, field }) => (code === "similar-name" ? [field] : []));
}

describe("a name that means a listed one is taken for it", () => {
  test.each([
    ["consumerPhoneNumber", "consumerPhone"],
    ["consumerMobile", "consumerPhone"],
    ["customer_phone", "consumerPhone"],
    ["Guest-Mobile-Number", "consumerPhone"],
    ["phone", "consumerPhone"],
    ["agentPhone", "agentPhoneNumber"],
    ["AgentTelephone", "agentPhoneNumber"],
    ["agent_mobile", "agentPhoneNumber"],
    ["consumerEmailAddress", "consumerEmail"],
    ["consumerMail", "consumerEmail"],
    ["agentEmailAddress", "agentEmail"],
    ["agentFirstName", "agentGivenName"],
    ["agentLastName", "agentFamilyName"],
    ["agent.surname", "agentFamilyName"],
    ["agentId", "agentPartnerExternalReference"],
    ["agentTz", "agentTimezone"],
    ["consumerFirstName", "consumerGivenName"],
    ["first_name", "consumerGivenName"],
    ["consumerTripDepartureFlightNo", "consumerTripDepartureFlightNumber"],
    ["departure_flight_num", "consumerTripDepartureFlightNumber"],
    ["ConsumerTripArrivalFlight", "consumerTripArrivalFlightNumber"],
    ["consumerTripDepartureCity", "consumerTripDepartureCityName"],
    ["departureCountry", "consumerTripDepartureCountryName"],
    ["consumerTripDestinationCity", "consumerTripDestinationName"],
    ["destination", "consumerTripDestinationName"],
    ["consumerTripDestinationCountry", "consumerTripDestinationCountryName"],
    ["destinationAirportIata", "consumerTripDestinationAirportCode"],
    ["consumerTripHotelName", "consumerTripAccommodationName"],
    ["hotel_address", "consumerTripAccommodationAddress"],
    ["venue", "consumerTripVenueName"],
    ["arrivalDate", "consumerTripArrivalDate"],
    ["START_DATE", "consumerTripArrivalDate"],
    ["checkIn", "consumerTripArrivalDate"],
    ["consumerTripArrivalDateTime", "consumerTripArrivalDate"],
    ["returnDate", "consumerTripReturnDate"],
    ["tripEndDate", "consumerTripReturnDate"],
    ["check-out-date", "consumerTripReturnDate"],
    ["productName", "consumerTripExternalProductName"],
    ["isInternational", "consumerTripIsInternational"],
    ["currency", "consumerCurrency"],
    ["Nationality", "consumerNationality"],
    ["language", "consumerLanguage"],
    ["consumerLocale", "consumerLanguage"],
    ["bookingReference", "consumerTripPartnerExternalReference"],
    ["booking_id", "consumerTripPartnerExternalReference"],
    ["tripReference", "consumerTripPartnerExternalReference"],
    ["reservationNumber", "consumerTripPartnerExternalReference"],
  ])("%s", (name, listed) => {
    expect(takenFor({ [name]: "x" })).toEqual([listed]);
  });
});

describe("a name that may mean something else is not", () => {
  test.each([
    ...["departureDate", "consumerTripDepartureDate", "bookingDate", "travelDate"],
    ...["flightNumber", "outboundFlight", "departureAirport", "consumerTripArrivalAirportCode"],
    ...["name", "consumerName", "customerName", "consumerSurname", "consumerLastName", "consumerAddress"],
    ...["id", "orderNumber", "pnr", "confirmationNumber", "customerReference", "partnerExternalReference", "partnerId"],
    ...["contactPhone", "hotelPhone", "emergencyPhone", "venuePhone", "faxNumber", "city", "country", "address"],
    ...["timezone", "totalPrice", "priceCurrency", "status", "guestNumber", "guests", "checkInTime", "local"],
    ...["consumerMobile2", "agentPhone1", "booking2Id"],
  ])("%s", (name) => {
    expect(takenFor({ [name]: "x" })).toEqual([]);
  });
});

test("a name that means a listed one is not taken for it if the payload has the listed one as well", () => {
  expect(takenFor({ currency: "EUR", consumerCurrency: "GBP" })).toEqual([]);
  expect(takenFor({ currency: "EUR", consumerCurrency: " " })).toEqual(["consumerCurrency"]);
  expect(takenFor({ currency: "EUR", consumerCurrency: null })).toEqual(["consumerCurrency"]);
  // A name that is only spelled otherwise is a mistake even so.
  expect(takenFor({ consumer_currency: "EUR", consumerCurrency: "GBP" })).toEqual(["consumerCurrency"]);
});

test("a name that means a listed one is not taken for it without a value of its own", () => {
  for (const hotel of [null, "", " ", true, { name: "Ritz" }, ["Ritz"]]) expect(takenFor({ hotel })).toEqual([]);
  expect(takenFor({ bookingId: 12 })).toEqual(["consumerTripPartnerExternalReference"]);
});

test("in a delete only names of references are taken for a listed one", () => {
  expect(takenFor({ bookingId: "x", agentId: "x", currency: "EUR", phone: "x" }, "delete")).toEqual([
    "consumerTripPartnerExternalReference",
  ]);
});

test("no name means two fields", () => {
  const letters = Object.entries(namesByMeaning).flatMap(([listed, names]) =>
    names.map((name) => [name.toLowerCase(), listed] as const),
  );
  const meanings = new Map(letters);
  for (const [name, listed] of letters) expect(`${name}: ${meanings.get(name)}`).toBe(`${name}: ${listed}`);
  for (const name of meanings.keys()) expect(name).toMatch(/^[a-z]{2,64}$/);
});

test("neither a warning about any such name nor the violation without a reference repeats its value", () => {
  for (const name of Object.values(namesByMeaning).flat()) {
    const payload = { consumerPartnerExternalReference: "C-1", [name]: "canary" };
    expect(JSON.stringify(findWarnings("create", payload))).not.toContain("canary");
    for (const without of [{ [name]: "canary" }, { data: { [name]: "canary" } }, { [`${name}_`]: { canary: 1 } }]) {
      expect(JSON.stringify(validatePayload("update", without))).not.toContain("canary");
    }
  }
});
