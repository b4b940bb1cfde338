import { describe, expect, test } from "vitest";
import { type BookingPayload, bookingFields, findWarnings } from "../index.ts";
import { type NormalisedBooking, normaliseBooking } from "../normalise/index.ts";

/** The payload may be one that is not valid, because these fields are never a reason to refuse. */
function codesOf(fields: Record<string, unknown>, defaultCountry: string | null = null): string[] {
  const payload = { consumerTripPartnerExternalReference: "booking-2001", ...fields } as BookingPayload;
  return findWarnings("create", payload, { defaultCountry }).map(({ code }) => code);
}

describe("a value gets a warning", () => {
  test.each<[field: string, code: string, values: unknown[]]>([
    ["consumerPhone", "unreadable-phone", ["07911 123456", "none", "+999 1234567", "+44 20 7183"]],
    ["agentPhoneNumber", "unreadable-phone", ["07911 123456", "x"]],
    ["consumerTripIsInternational", "unreadable-flag", ["maybe", "2", "null"]],
    ["consumerTripIsRegional", "unreadable-flag", ["maybe"]],
    ["consumerTripIsLocal", "unreadable-flag", ["maybe"]],
    ["consumerLanguage", "unreadable-language", ["?", "xx", "Elvish", "en-XX"]],
    ["consumerNationality", "unreadable-nationality", ["British", "ZZ", "?", 826, {}, ["GB"], true]],
    ["consumerCurrency", "unreadable-currency", ["$", "dollars", "ABC", 978, [], false]],
    ["consumerEmail", "unreadable-email", ["none", "ada@", "a@b.example, c@d.example", 0, {}, []]],
    ["consumerTripDepartureAirportCode", "unreadable-airport-code", ["EGLL", "London", "L1"]],
    ["consumerTripDestinationAirportCode", "unreadable-airport-code", ["LH"]],
    ["consumerTripDepartureCountryName", "unreadable-country", ["ZZ", "12345", "?", "n/a", "N. A.", "x".repeat(101)]],
    ["consumerTripDestinationCountryName", "unreadable-country", ["XYZ", "-", "😀"]],
    ["consumerTripArrivalDate", "unreadable-date", ["0001-01-01T00:00:00", "0000-00-00", "9999-12-31"]],
    ["consumerTripReturnDate", "no-time-zone", ["2026-06-14T07:27:17", "2026-06-14 07:27"]],
    ["agentTimezone", "unreadable-time-zone", ["BST", "Paris", "+05:30"]],
  ])("in %s: %s", (field, code, values) => {
    for (const value of values) {
      const payload = { consumerTripPartnerExternalReference: "T-1", [field]: value } as BookingPayload;
      const warnings = findWarnings("update", payload);
      expect(warnings, String(value)).toEqual([{ code, field, propertyPath: [field], message: expect.any(String) }]);
      expect(warnings[0]?.message).toMatch(/(?:Send|Omit) .*\.$/);
      expect(findWarnings("delete", payload)).toEqual([]);
    }
  });
});

describe("there is no warning", () => {
  test("about a value as the guide asks for it", () => {
    const fields = {
      ...{ consumerPhone: "+442071838750", agentPhoneNumber: "+15550100456", consumerTripIsLocal: "true" },
      ...{
        consumerLanguage: "pt-BR",
        consumerNationality: "GB",
        consumerCurrency: "EUR",
        agentTimezone: "Europe/London",
      },
      ...{ consumerEmail: "ada@example.com", consumerTripDepartureAirportCode: "LHR" },
      ...{ consumerTripDestinationCountryName: "Portugal", consumerTripDepartureCountryName: "GB" },
      ...{ consumerTripArrivalDate: "2026-06-14", consumerTripReturnDate: "2026-06-17T07:27:17+02:00" },
    };
    expect(codesOf(fields)).toEqual([]);
  });

  test.each(["", " ", "\n\t", "\u00a0", "\u200b \u200e"])("about %j in any field", (blank) => {
    const names = bookingFields
      .map(({ name }) => name)
      .filter((name) => name !== "consumerTripPartnerExternalReference");
    expect(codesOf(Object.fromEntries(names.map((name) => [name, blank])))).toEqual([]);
  });

  test("about null", () => {
    const names = ["consumerLanguage", "consumerEmail", "consumerNationality", "consumerCurrency"];
    expect(codesOf(Object.fromEntries(names.map((name) => [name, null])))).toEqual([]);
  });

  test("about a country's name that is in no table, or a usual abbreviation", () => {
    expect(codesOf({ consumerTripDestinationCountryName: "U.S.A.", consumerTripDepartureCountryName: "U.K." })).toEqual(
      [],
    );
    expect(codesOf({ consumerTripDestinationCountryName: "Narnia", consumerTripDepartureCountryName: "秘密" })).toEqual(
      [],
    );
  });

  test("about a national number if its country is known", () => {
    const number = { consumerPhone: "07911 123456" };
    expect(codesOf({ ...number, consumerNationality: "British" })).toEqual([
      "unreadable-phone",
      "unreadable-nationality",
    ]);
    expect(codesOf({ ...number, consumerNationality: "United Kingdom" })).toEqual([]);
    expect(codesOf(number, "GB")).toEqual([]);
    expect(codesOf(number, "FR")).toEqual(["unreadable-phone"]);
    // The consumer's nationality is not the agent's.
    expect(codesOf({ agentPhoneNumber: "07911 123456", consumerNationality: "GB" })).toEqual(["unreadable-phone"]);
    expect(codesOf({ agentPhoneNumber: "07911 123456" }, "GB")).toEqual([]);
  });
});

/** The values that a warning calls unreadable. */
const columns: Record<string, keyof NormalisedBooking> = {
  consumerPhone: "consumerPhone",
  agentPhoneNumber: "agentPhoneNumber",
  consumerTripIsLocal: "consumerTripIsLocal",
  consumerLanguage: "consumerLanguage",
  consumerNationality: "consumerNationality",
  consumerCurrency: "consumerCurrency",
  consumerEmail: "consumerEmail",
  consumerTripDepartureAirportCode: "consumerTripDepartureAirportCode",
  consumerTripArrivalDate: "consumerTripArrivalDate",
  agentTimezone: "agentTimezone",
};

test("a value is called unreadable if and only if normaliseBooking has null in its place", () => {
  const values = [
    ...["+442071838750", "07911 123456", "true", "maybe", "en", "xx", "GB", "ZZ", "EUR", "$", "ada@example.com", "LHR"],
    ...["2026-06-14", "2026-06-14T07:27:17", "0001-01-01", "Europe/London", "BST", "x", "1"],
  ];
  for (const [field, column] of Object.entries(columns))
    for (const value of values) {
      const isUnreadable = codesOf({ [field]: value }, "GB").some((code) => code.startsWith("unreadable-"));
      const isNull = normaliseBooking({ [field]: value }, { defaultCountry: "GB" })[column] === null;
      const isRefused = column === "consumerTripArrivalDate" && !value.includes("-01") && !value.includes("2026");
      expect(isUnreadable, `${field} ${value}`).toBe(isNull && !isRefused);
    }
});
