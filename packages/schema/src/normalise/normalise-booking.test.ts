import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { agentCountriesOf, consumerCountriesOf, normaliseBooking } from "./normalise-booking.ts";

const { payload } = JSON.parse(readFileSync(new URL("../../examples/full-booking.json", import.meta.url), "utf8")) as {
  payload: Record<string, unknown>;
};

test("the full booking's values are read", () => {
  expect(normaliseBooking(payload, { defaultCountry: null })).toEqual({
    consumerPhone: "+15550100123",
    consumerPhoneIsAssumed: false,
    consumerEmail: "robin@example.com",
    consumerLanguage: "en",
    consumerNationality: "GB",
    consumerCurrency: "EUR",
    consumerTripDepartureCountryName: "United Kingdom",
    consumerTripDepartureCountryCode: "GB",
    consumerTripDepartureAirportCode: "LHR",
    consumerTripDestinationCountryName: "Portugal",
    consumerTripDestinationCountryCode: "PT",
    consumerTripDestinationAirportCode: "LIS",
    consumerTripIsInternational: true,
    consumerTripIsRegional: false,
    consumerTripIsLocal: false,
    consumerTripArrivalDate: "2026-06-14",
    consumerTripArrivalAt: "2026-06-14T07:27:17.335Z",
    consumerTripReturnDate: "2026-06-17",
    consumerTripReturnAt: null,
    agentTimezone: "Europe/London",
    agentPhoneNumber: "+15550100456",
    agentPhoneNumberIsAssumed: false,
    agentEmail: "sam.o'example@example.com",
  });
});

test.each([
  [" Portugal\n", "Portugal"],
  ["x".repeat(100), "x".repeat(100)],
  ["x".repeat(101), null],
  [" ", null],
])("the country's name of %j is %j", (sent, name) => {
  expect(normaliseBooking({ consumerTripDestinationCountryName: sent }, { defaultCountry: null })).toMatchObject({
    consumerTripDestinationCountryName: name,
  });
});

test("a phone number may be in the consumer's country, then in the default one, the agent's only there", () => {
  const withDefault = { defaultCountry: "PT" };
  const without = { defaultCountry: null };
  expect(consumerCountriesOf({ consumerNationality: "GB" }, withDefault)).toEqual(["GB", "PT"]);
  expect(consumerCountriesOf({ consumerNationality: "unknown" }, withDefault)).toEqual(["PT"]);
  expect(consumerCountriesOf({ consumerNationality: 7 }, without)).toEqual([]);
  expect(agentCountriesOf(withDefault)).toEqual(["PT"]);
  expect(agentCountriesOf(without)).toEqual([]);
});

test("a payload without values has none", () => {
  const values = Object.values(normaliseBooking({ consumerPhone: null, consumerEmail: 7 }, { defaultCountry: "GB" }));
  expect(new Set(values)).toEqual(new Set([null]));
});
