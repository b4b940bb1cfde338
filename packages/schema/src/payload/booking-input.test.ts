import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { type BookingField, BookingInput, bookingFields, type Violation, validatePayload } from "../index.ts";
import type { FieldType } from "./field-types.ts";

const tripName = "consumerTripPartnerExternalReference";
const reference = { [tripName]: "booking-2001" };

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
consumerTripArrivalDate              date
consumerTripReturnDate               date
agentPartnerExternalReference        text
agentTimezone                        text
agentPhoneNumber                     phone
agentGivenName                       text
agentFamilyName                      text
agentEmail                           email
consumerLanguage                     language or null
consumerTripPartnerExternalReference text     255
consumerEmail                        email    or anything
consumerNationality                  text     or anything
consumerCurrency                     text     or anything
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
  text: "Must be a string of up to",
  phone: "Must be a string of up to",
  flag: "Must be a string of up to",
  date: "Must be a date such as",
  email: "Must be one e-mail address",
  language: "Must be a string of up to",
} satisfies Record<FieldType, string>;

test("the listed fields are those of the contract, in its order", () => {
  const described = bookingFields.map(({ name, type, nullable, maxLength, acceptsAnything }) => {
    const note = acceptsAnything ? "or anything" : nullable ? "or null" : maxLength === 8_192 ? "" : String(maxLength);
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

const fieldsWithRules = bookingFields.filter(({ acceptsAnything }) => !acceptsAnything);

describe.each(fieldsWithRules)("$name", ({ name, type, nullable }) => {
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
  ])("refuses $value: $sent", ({ sent, value, hint }) => {
    expect(violationsOf(name, value)).toEqual([
      { message: expect.any(String), code: expect.any(String), propertyPath: [name] },
    ]);

    const message = violationsOf(name, value)[0]?.message ?? "";
    expect(message).toMatch(new RegExp(`^${typeRules[type]}.*; got ${sent}\\.${hint && ` ${hint}`}$`));
    expect(message.includes("or null")).toBe(nullable);
  });

  test.each(["", " ", "\t\r\n\u00a0", " \u200b\u2060"])(
    "accepts the blank text %j, except for an identifying reference",
    (blank) => {
      const consumer = { consumerPartnerExternalReference: "customer-1001" };
      expect(validatePayload("update", { ...reference, ...consumer, [name]: blank }).success).toBe(true);
    },
  );

  test("counts as absent if it is undefined", () => {
    const consumer = { consumerPartnerExternalReference: "customer-1001" };
    expect(validatePayload("update", { ...reference, ...consumer, [name]: undefined }).success).toBe(true);
    expect(v.is(BookingInput, { ...reference, ...consumer, [name]: undefined })).toBe(true);
  });

  test("has one issue for one value, also as a schema", () => {
    for (const value of [null, 7, "x".repeat(9_000)]) {
      const { issues = [] } = v.safeParse(BookingInput, { ...reference, [name]: value });
      expect(issues).toHaveLength(nullable && value === null ? 0 : 1);
    }
  });

  test(nullable ? "may be null" : "may not be null", () => {
    const violations = violationsOf(name, null);

    if (nullable) expect(violations).toEqual([]);
    else
      expect(violations).toEqual([
        { message: expect.stringContaining("; got null."), code: expect.any(String), propertyPath: [name] },
      ]);
  });
});

const isFormatted = ({ type }: BookingField) => type === "date" || type === "email";

describe.each(fieldsWithRules.filter((field) => !isFormatted(field)))("$name", ({ name, maxLength }) => {
  test.each(["x", "é", "😀"])("counts characters such as %s, not UTF-16 code units", (character) => {
    const tooLong = {
      message: expect.stringContaining("; got a longer string."),
      code: "too-long",
      propertyPath: [name],
    };

    expect(violationsOf(name, character.repeat(maxLength))).toEqual([]);
    expect(violationsOf(name, character.repeat(maxLength + 1))).toEqual([tooLong]);
  });
});

describe.each(bookingFields.filter(({ acceptsAnything }) => acceptsAnything))("$name", ({ name }) => {
  test.each([null, "", " ", "sam", 7, true, [], ["sam@example.com"], { a: 1 }, "x".repeat(9_000)])(
    "may be %j",
    (value) => {
      expect(violationsOf(name, value)).toEqual([]);
    },
  );

  test("has the bounds of an unlisted field", () => {
    const deep = JSON.parse(`${"[".repeat(16)}${"]".repeat(16)}`);
    expect(violationsOf(name, deep)).toMatchObject([{ code: "too-deep" }]);
    expect(violationsOf(name, Array(2_000).fill(1))).toMatchObject([{ code: "too-many-values", propertyPath: [] }]);
  });
});

describe("the agent's e-mail address", () => {
  test.each(["sam@example.com", "Sam <sam@example.com>", " sam@example.com\n", "säm@bücher.example"])(
    "may be %j",
    (text) => {
      expect(violationsOf("agentEmail", text)).toEqual([]);
    },
  );

  test.each(["sam", "sam@example.com, robin@example.com", "sam @example.com"])("may not be %j", (text) => {
    expect(violationsOf("agentEmail", text)).toMatchObject([{ code: "malformed", propertyPath: ["agentEmail"] }]);
  });

  test("may not be longer than other texts", () => {
    expect(violationsOf("agentEmail", `${" ".repeat(8_177)}sam@example.com`)).toEqual([]);
    expect(violationsOf("agentEmail", `${" ".repeat(8_178)}sam@example.com`)).toMatchObject([{ code: "too-long" }]);
  });
});

describe("a date", () => {
  test.each(["20260614", " 2026-06-14 07:27:17+02\n", "2026-06-14T07:27", "0001-01-01T00:00:00"])(
    "may be %j",
    (text) => {
      expect(violationsOf("consumerTripArrivalDate", text)).toEqual([]);
    },
  );

  test.each(["14/06/2027", "1781421600", "2026-06-14T24:00", "2026-02-31"])("may not be %j", (text) => {
    expect(violationsOf("consumerTripArrivalDate", text)).toMatchObject([{ code: "malformed" }]);
  });
});

describe("retired names", () => {
  test.each(["consumerTripBookingDate", "consumerTripDepartureFlightAirline"])(
    "%s is kept, whatever its value",
    (name) => {
      for (const value of ["2026-06-14", "", null, 7, {}]) {
        const payload = { ...reference, [name]: value };
        expect(validatePayload("create", payload)).toEqual({ success: true, payload });
      }
    },
  );

  test("have the bounds of unlisted names", () => {
    expect(violationsOf("consumerTripBookingDate", Array(2_000).fill(1))).toMatchObject([{ code: "too-many-values" }]);
  });
});

describe("BookingInput, used as a valibot schema", () => {
  test("keeps unlisted fields", () => {
    const payload = { ...reference, loyalty: { tier: "gold" } };

    expect(v.parse(BookingInput, payload)).toEqual(payload);
  });

  test.each([
    ["a listed field", { ...reference, consumerPhone: 7 }, "consumerPhone"],
    ["the type of the reference", { consumerTripPartnerExternalReference: 7 }, tripName],
    ["the reference", { consumerPhone: "+15550100123" }, "consumerTripPartnerExternalReference"],
    ["the length of the reference", { ...reference, consumerTripPartnerExternalReference: "x".repeat(256) }, tripName],
    ["a date", { ...reference, consumerTripArrivalDate: "14/06/2026" }, "consumerTripArrivalDate"],
    ["an unlisted field", { ...reference, notes: [{ text: Number.NaN }] }, "notes.0.text"],
    ["an array", [], "consumerTripPartnerExternalReference"],
  ])("applies the rule on %s", (_, payload, path) => {
    const { issues = [] } = v.safeParse(BookingInput, payload);

    expect(issues.map((issue) => v.getDotPath(issue))).toEqual([path]);
  });
});
