import * as v from "valibot";
import { describe, expect, test } from "vitest";
import {
  type BookingField,
  BookingInput,
  bookingFields,
  type FieldType,
  type Violation,
  validatePayload,
} from "../index.ts";

const reference = { consumerTripPartnerExternalReference: "booking-2001" };

/** The published list, repeated here so that no change of a field goes unnoticed. */
const contract = `
consumerGivenName                    text
consumerPartnerExternalReference     text
consumerPhone                        phone
consumerTripDepartureCityName        text
consumerTripDepartureCountryName     text
consumerTripDepartureAirportCode     text
consumerTripDepartureAirportName     text
consumerTripDepartureFlightNumber    text
consumerTripArrivalAirportName       text
consumerTripArrivalFlightNumber      text
consumerTripAccommodationName        text
consumerTripAccommodationAddress     text
consumerTripVenueName                text
consumerTripVenueAddress             text
consumerTripDestinationName          text
consumerTripDestinationCountryName   text
consumerTripDestinationAirportCode   text
consumerTripExternalProductName      text
consumerTripIsInternational          flag
consumerTripIsRegional               flag
consumerTripIsLocal                  flag
consumerTripArrivalDate              date     35
consumerTripReturnDate               date     35
agentPartnerExternalReference        text
agentTimezone                        text
agentPhoneNumber                     phone
agentGivenName                       text
agentFamilyName                      text
agentEmail                           email
consumerLanguage                     language or null
consumerTripPartnerExternalReference text     255
consumerEmail                        email    or null
consumerNationality                  text     or null
consumerCurrency                     text     or null
`;

const validValues = {
  text: "Example",
  phone: "+15550100123",
  flag: "true",
  date: "2026-06-14",
  email: "sam@example.com",
  language: "en",
} satisfies Record<FieldType, string>;

const typeRules = {
  text: "Must be a string of 1 to",
  phone: "Must be a string of 1 to",
  flag: "Must be a string of 1 to",
  date: "Must be a date such as",
  email: "Must be an e-mail address",
  language: "Must be a string of 1 to",
} satisfies Record<FieldType, string>;

const noValue = "Omit the field if you have no value.";

test("the listed fields are those of the contract, in its order", () => {
  const described = bookingFields.map(({ name, type, nullable, maxLength }) => {
    const note = nullable ? "or null" : maxLength === 1_024 ? "" : String(maxLength);
    return `${name.padEnd(36)} ${type.padEnd(8)} ${note}`.trimEnd();
  });

  expect(described).toEqual(contract.trim().split("\n"));
});

/** A number in place of a date is a timestamp, which would not be a date in quotes either. */
const numberHints: Partial<Record<FieldType, string>> = {
  date: "Send the date as a string. Unix timestamps are not supported.",
};

function violationsOf(name: string, value: unknown): Violation[] {
  const result = validatePayload("update", { ...reference, [name]: value });
  return result.success ? [] : result.violationList;
}

test("no field is required except the reference", () => {
  expect(validatePayload("create", reference).success).toBe(true);
});

describe.each(bookingFields)("$name", ({ name, type, nullable }) => {
  test("accepts valid values", () => {
    expect(violationsOf(name, validValues[type])).toEqual([]);
  });

  test.each([
    { sent: "a number", value: 7, hint: numberHints[type] ?? "Put it in quotes." },
    { sent: "a number", value: 0, hint: numberHints[type] ?? "Put it in quotes." },
    { sent: "a boolean", value: true, hint: "Put it in quotes." },
    { sent: "a boolean", value: false, hint: "Put it in quotes." },
    { sent: "an array", value: [], hint: "" },
    { sent: "an array", value: [validValues[type]], hint: "" },
    { sent: "an object", value: {}, hint: "" },
    { sent: "an object", value: { [name]: validValues[type] }, hint: "" },
    { sent: "an empty string", value: "", hint: noValue },
    { sent: "undefined", value: undefined, hint: noValue },
  ])("refuses $value: $sent", ({ sent, value, hint }) => {
    expect(violationsOf(name, value)).toEqual([
      { message: expect.any(String), code: expect.any(String), propertyPath: [name] },
    ]);

    const message = violationsOf(name, value)[0]?.message ?? "";
    expect(message).toMatch(new RegExp(`^${typeRules[type]}.*; got ${sent}\\.${hint && ` ${hint}`}$`));
    expect(message.includes("or null")).toBe(nullable);
  });

  test(nullable ? "may be null" : "may not be null", () => {
    const violations = violationsOf(name, null);

    if (nullable) expect(violations).toEqual([]);
    else
      expect(violations).toEqual([
        { message: expect.stringContaining("; got null."), code: expect.any(String), propertyPath: [name] },
      ]);
  });

  test.each(["\0", "a\0b", "\ud800", "\udc00", "\udc00\ud800", "😀\ud83d"])("refuses unstorable text %j", (text) => {
    expect(violationsOf(name, text)).toEqual([
      { message: expect.any(String), code: expect.any(String), propertyPath: [name] },
    ]);
  });
});

const isFormatted = ({ type }: BookingField) => type === "date" || type === "email";

describe.each(bookingFields.filter((field) => !isFormatted(field)))("$name", ({ name, maxLength }) => {
  test.each(["x", "é", "😀"])("counts characters such as %s, not UTF-16 code units", (character) => {
    const tooLong = {
      message: expect.stringContaining("; got a longer string."),
      code: expect.any(String),
      propertyPath: [name],
    };

    expect(violationsOf(name, character.repeat(maxLength))).toEqual([]);
    expect(violationsOf(name, character.repeat(maxLength + 1))).toEqual([tooLong]);
  });
});

describe("e-mail addresses", () => {
  test("have a limit", () => {
    const addressOf = (length: number) => "sam@example.com".padStart(length, "x");

    expect(violationsOf("agentEmail", addressOf(1_024))).toEqual([]);
    expect(violationsOf("agentEmail", addressOf(1_025))).toHaveLength(1);
  });

  test.each([
    "sam@example.com",
    "sam.o'example@example.com",
    "sam+trip@mail.example.co.uk",
    "sam_1@xn--bcher-kva.example",
    "sam@localhost",
    "1!#$%&'*+/=?^_`{|}~-@example.com",
  ])("accepts %s", (agentEmail) => {
    expect(validatePayload("create", { ...reference, agentEmail }).success).toBe(true);
  });

  test.each([
    "sam",
    "sam@",
    "@example.com",
    "sam@@example.com",
    "sam@example..com",
    "sam@-example.com",
    "sam @example.com",
    " sam@example.com",
    "sam@example.com\n",
    "Sam <sam@example.com>",
    "sam@example.com, robin@example.com",
    "säm@example.com",
  ])("refuses %j", (agentEmail) => {
    const result = validatePayload("create", { ...reference, agentEmail });

    expect(result).toMatchObject({ violationList: [{ propertyPath: ["agentEmail"] }] });
  });
});

describe("retired names", () => {
  test.each([
    ["consumerTripBookingDate", "consumerTripArrivalDate"],
    ["consumerTripDepartureFlightAirline", "Omit it"],
  ])("%s is refused whatever its value, saying: %s", (name, instead) => {
    for (const value of ["2026-06-14", "", null, 7, {}, undefined]) {
      const result = validatePayload("create", { ...reference, [name]: value });

      const violation = { message: expect.stringContaining(instead), code: expect.any(String), propertyPath: [name] };
      expect(result).toEqual({ success: false, violationList: [violation] });
    }
  });

  test("below the first level they are ordinary names", () => {
    expect(validatePayload("create", { ...reference, old: { consumerTripBookingDate: "x" } }).success).toBe(true);
  });
});

describe("BookingInput, used as a valibot schema", () => {
  test("keeps unlisted fields", () => {
    const payload = { ...reference, loyalty: { tier: "gold" } };

    expect(v.parse(BookingInput, payload)).toEqual(payload);
  });

  test.each([
    ["a listed field", { ...reference, consumerPhone: 7 }, "consumerPhone"],
    ["the reference", { consumerPhone: "+15550100123" }, "consumerTripPartnerExternalReference"],
    ["a retired name", { ...reference, consumerTripBookingDate: "2026-06-14" }, "consumerTripBookingDate"],
    ["an unlisted field", { ...reference, notes: [{ text: "\0" }] }, "notes.0.text"],
    ["an array", [], "consumerTripPartnerExternalReference"],
  ])("applies the rule on %s", (_, payload, path) => {
    const { issues = [] } = v.safeParse(BookingInput, payload);

    expect(issues.map((issue) => v.getDotPath(issue))).toEqual([path]);
  });
});
