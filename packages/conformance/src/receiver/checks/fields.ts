import { type BookingField, bookingFields } from "@booking-events/schema";
import { type Check, check, specified, type Trial } from "../check.ts";
import { accepted, dryRunPassed, type Expectation, invalid, invalidAt } from "../expectations.ts";
import { bookingJson, createWith, forEach, rawJson } from "../payloads.ts";

const trip = "consumerTripPartnerExternalReference";
const consumer = "consumerPartnerExternalReference";

/** The fields that the specification does not list. */
const addedByUs = new Set<string>([trip, "consumerEmail", "consumerNationality", "consumerCurrency"]);

/** The rules of each field, and those of references, dates and unlisted fields that the examples do not show. */
export const fieldChecks: readonly Check[] = [
  ...bookingFields.flatMap(checksOfField),
  ...references(),
  ...dates(),
  check("violations/names", "Names that are long, or that are no valid text, break no answer.", {
    request: createWith((reference) => rawJson(reference, `"${"n".repeat(254)}😀":1e1000,"\\ud83d":1e1000`)),
    expect: invalid([`${"n".repeat(254)}…`], ["\ufffd"]),
  }),
  check("violations/maximum", "422 lists up to 50 violations.", {
    request: createWith((reference) => rawJson(reference, longNumbers(60))),
    expect: invalid(...Array.from({ length: 50 }, (_, index) => [`f${index}`])),
  }),
];

function checksOfField(field: BookingField): Check[] {
  return field.acceptsAnything ? [acceptsAnything(field)] : rulesOfField(field);
}

function acceptsAnything(field: BookingField): Check {
  return check(
    `fields/${field.name}/any`,
    "No value is a reason to refuse the event.",
    ...forEach([null, "", "x", 1, true, [], {}], (value) => withField(field, value), accepted),
  );
}

function rulesOfField(field: BookingField): Check[] {
  const { name, nullable, maxLength } = field;
  const notStrings = [...(nullable ? [] : [null]), 1, true, [], {}];
  const isOurs = addedByUs.has(name);
  const types = check(
    `fields/${name}/type`,
    `A value that is no string${nullable ? " and not null" : ""} gets 422.`,
    ...forEach(notStrings, (value) => withField(field, value), isOurs ? invalid([name]) : invalidAt(name)),
  );
  return [
    isOurs ? types : specified(types),
    check(
      `fields/${name}/length`,
      `A string of up to ${maxLength} characters is accepted${nullable ? ", and null" : ""}. Others get 422.`,
      ...(nullable ? [{ label: "null", request: withField(field, null), expect: accepted }] : []),
      ...longestValues(field),
      ...(name === trip ? [] : [{ label: "empty", request: withField(field, ""), expect: accepted }]),
      { label: "too long", request: withField(field, "x".repeat(maxLength + 1)), expect: invalid([name]) },
    ),
  ];
}

function withField({ name }: BookingField, value: unknown): Trial["request"] {
  return createWith((reference) => bookingJson(reference, { [name]: value }));
}

function longestValues(field: BookingField): Trial[] {
  const { name, type, maxLength } = field;
  if (type === "date" || type === "email") return [];
  if (/PartnerExternalReference$/.test(name) && name.startsWith("consumer")) {
    const request = createWith((reference) => bookingJson(reference, { [name]: reference.padEnd(maxLength, "x") }));
    return [{ label: "longest", request, expect: accepted }];
  }
  // Characters are code points, and this one has two UTF-16 code units.
  return ["x", "😀".repeat(maxLength)].map((value) => ({
    label: value === "x" ? "shortest" : "longest",
    request: withField(field, value),
    expect: accepted,
  }));
}

function references(): Check[] {
  const blanks = ["", " ", "\t\n", "\u00a0", "\u3000", "\ufeff", "\u2028", "\u200b", "\u00ad"];
  const deletion = (payload: object) => () => ({ operation: "delete" as const, body: JSON.stringify(payload) });
  const deletions = (payloads: readonly object[], expect: Expectation) => forEach(payloads, deletion, expect);
  return [
    check(
      "references/blank",
      "A trip reference that is empty, blank or invisible counts as missing: the consumer's counts, or there is none.",
      ...forEach(blanks, (blank) => () => ({ body: JSON.stringify({ [trip]: blank }) }), invalid([trip])),
      // Dry runs, because one consumer's booking would be another for each receiver.
      ...forEach(
        blanks,
        (blank) => () => ({ dryRun: true, body: JSON.stringify({ [trip]: blank, [consumer]: "C-1" }) }),
        dryRunPassed,
      ),
    ),
    check(
      "references/cleaned",
      "The limit of the trip reference counts after cleaning.",
      ...forEach(
        [`${"x".repeat(255)}\r\n`, `${"x".repeat(255)}\u200b`, "e\u0301".repeat(255)],
        (text) => () => ({ dryRun: true, body: JSON.stringify({ [trip]: text }) }),
        dryRunPassed,
      ),
    ),
    check(
      "references/of-a-delete",
      "A delete must have a reference, by the same rules. Nothing else in it is a reason to refuse.",
      ...deletions([{}, { consumerGivenName: "Robin" }], invalid([trip])),
      ...deletions(
        [{ [trip]: null, [consumer]: "C-1" }, { [trip]: 1 }, { [trip]: "" }, { [trip]: " " }],
        invalid([trip]),
      ),
      ...deletions([{ [consumer]: null }, { [trip]: "", [consumer]: 7 }], invalid([consumer])),
      {
        label: "other fields",
        request: (reference) => ({
          operation: "delete",
          body: JSON.stringify({ [trip]: reference, [consumer]: null, consumerPhone: 1, consumerTripArrivalDate: "x" }),
        }),
        expect: accepted,
      },
    ),
  ];
}

function dates(): Check[] {
  const date = "consumerTripArrivalDate";
  const withDate = (value: unknown) => createWith((reference) => bookingJson(reference, { [date]: value }));
  return [
    specified(
      check(
        "dates/accepted",
        "A date and a date-time with its time zone are accepted.",
        ...forEach(["2026-06-14", "2026-06-14T07:27:17.335Z", "2026-06-14T07:27:17+02:00"], withDate, accepted),
      ),
    ),
    check(
      "dates/accepted-more",
      "What systems write is accepted: other separators and zones, none, blanks around, and what stands for no date.",
      ...forEach(["2026-06-14T07:27:17+0200", "2028-02-29", "1900-01-01", "2999-12-31"], withDate, accepted),
      ...forEach(["20260614", " 2026-06-14 07:27:17 ", "2026-06-14t07:27z", "2026-06-14Z"], withDate, accepted),
      ...forEach(["2026-06-14 07:27:17 UTC", "2026-06-14T07:27:17+02[Europe/Berlin]"], withDate, accepted),
      ...forEach(["0001-01-01T00:00:00", "0000-00-00 00:00:00", "9999-12-31"], withDate, accepted),
    ),
  ];
}

function longNumbers(count: number): string {
  return Array.from({ length: count }, (_, index) => `"f${index}":1e1000`).join();
}
