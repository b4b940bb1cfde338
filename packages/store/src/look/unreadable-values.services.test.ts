import { useTestDatabase } from "@booking-events/harness/test-database";
import { type BookingPayload, bookingFields, findWarnings, validatePayload } from "@booking-events/schema";
import { bookingInput } from "@booking-events/schema/testing";
import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";

const { pool } = useTestDatabase();

beforeEach(() => pool.query("truncate bookings"));

type Fields = Record<string, string | null>;

/** Valid payloads of create only, because warnings are about nothing else. */
function toPayloads(fields: Fields[]) {
  return fields.flatMap((each) => {
    const result = validatePayload("create", { ...each, consumerTripPartnerExternalReference: "booking-2001" });
    return result.success ? [result.payload] : [];
  });
}

/** Returns, for each payload, the fields that `booking_details_unreadable` counts. Each payload gets its own partner. */
async function readUnreadableFields(payloads: object[]): Promise<string[][]> {
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision,
       last_sequence, payload, created_at, updated_at, arrival_date, arrival_at, return_date, return_at,
       destination_country, destination_airport)
     select sha256(convert_to(place::text, 'UTF8')), place::text, 'trip', place::text, 'active', gen_random_uuid(), 1, 1, 1,
       payload, now(), now(), trip.*
     from jsonb_array_elements($1::jsonb) with ordinality as sent (payload, place), booking_trip(payload) as trip`,
    [JSON.stringify(payloads)],
  );
  const { rows } = await pool.query<{ partner: string; field: string }>(
    "select partner, field from booking_details_unreadable",
  );
  const fields = payloads.map((): string[] => []);
  for (const { partner, field } of rows) fields[Number(partner) - 1]?.push(field);
  return fields.map((each) => each.sort());
}

function findUnreadableFields(payload: BookingPayload): string[] {
  const warnings = findWarnings("create", payload).filter(({ code }) => code !== "similar-name");
  return warnings.map(({ field }) => field).sort();
}

/** The fields that a warning can be about, and what they may contain: see `booking_details_unreadable`. */
const fieldsByName = Object.fromEntries(bookingFields.map((field) => [field.name, field]));
const samples: Record<string, string[]> = {
  consumerPhone: [
    ...["+442071838750", "07911 123456", "+44 (0)20 7183-8750", "0044 20 7183 8750", "(0)0442071838750", "+1234567"],
    ...[
      "+123456",
      "+123456789012345",
      "+1234567890123456",
      "+0123456789",
      "00 0123456789",
      "44 2071838750",
      "++4420718",
    ],
    ...[
      "+44\t20\n7183\r8750\f1\v",
      "\n+442071838750\n",
      "+44/20.7183-8750",
      "+44(0)(0)2071838750",
      "((0)0)442071838750",
    ],
    ...["+44207183875O", "+٤٤٢٠٧١٨٣٨٧٥٠", "+44−2071838750", "+44_2071838750", "0+0442071838750", "0-044 2071838750"],
    ...["tel:+442071838750", "+442071838750 ext. 2", "000442071838750", "-(0)-", " ", "+", "\u{1f4de}+442071838750"],
  ],
  consumerTripIsLocal: [
    ...["true", "TRUE", " true ", "t", "T", "yes", "Yes", "y", "1", "false", "False", "f", "no", "NO", "n", "0", " 0 "],
    ...[
      "",
      "\ttrue",
      "true\n",
      "ja",
      "on",
      "off",
      "01",
      "2",
      "tru",
      "truee",
      "yeſ",
      "falſe",
      "y es",
      " ",
      "nο",
      "1.0",
      "İ",
    ],
  ],
  consumerLanguage: [
    ...["en", "EN", "eng", "en_US", "en-us", "zh-Hant-TW", "zh_hant_tw", "es-419", "es_419", "zh-Hant", "sr-Latn-RS"],
    ...[
      "English",
      "e",
      " en",
      "en ",
      "en-",
      "en--US",
      "en-USA",
      "en-US-x",
      "es-41",
      "es-4190",
      "zh-Han-TW",
      "en\n",
      "é",
      "ën",
    ],
    ...["kk", "KK", "sk-SK", "ſk", "en-٤١٩", "en US", "en.US", "de-CH-1996", "i-klingon", "fil-PH", "abcd"],
  ],
  consumerNationality: [
    ...[
      "GB",
      "gb",
      "GBR",
      " gb ",
      "g",
      "G B",
      "GB\n",
      "\tGB",
      "GBRX",
      "British",
      "ÉS",
      "és",
      "ß",
      "ıt",
      "ſ",
      "K",
      "1",
      "G1",
      "  ",
    ],
  ],
  consumerCurrency: ["EUR", "eur", " EUR ", "€", "EU", "EURO", "E R", "EUR\n", "ÉUR", "eſr", "KZT", "123", "$", "   "],
  consumerTripDepartureAirportCode: ["LHR", "lhr", " LHR", "LH", "EGLL", "London", "LH1", "ÅHR", "LHR\t", "(LHR)"],
  consumerTripDestinationCountryName: [
    ...[
      "Portugal",
      " Portugal ",
      " ",
      "   ",
      "\t",
      "\n",
      "é",
      "x".repeat(100),
      "x".repeat(101),
      "😀".repeat(100),
      "😀".repeat(101),
    ],
    ...[" ".repeat(100), `${" ".repeat(99)}x`, `${" ".repeat(100)}x`, "😀".repeat(50), "é".repeat(100)],
  ],
};

/** Beyond ASCII, PostgreSQL's collations disagree about what is white space, a digit, or the letter i or k. */
const disputed = /(?!\p{ASCII})[\p{White_Space}\p{Nd}\u0130\u212a]/u;

/** Texts that are nearly readable, of the characters that the rules are about. */
function nearly(sample: readonly string[]): fc.Arbitrary<string> {
  const pieces = fc.constantFrom(
    ...sample.join(""),
    " ",
    "\t",
    "\n",
    "0",
    "00",
    "(0)",
    "+",
    "-",
    "_",
    "\u00a0",
    "\u2009",
    "K",
  );
  return fc.oneof(
    fc.array(pieces, { minLength: 1, maxLength: 12 }).map((parts) => parts.join("")),
    fc.tuple(fc.constantFrom(...sample), fc.nat(20), pieces).map(([text, place, piece]) => {
      return text.slice(0, place) + piece + text.slice(place);
    }),
    fc
      .tuple(fc.constantFrom(...sample), fc.nat(20))
      .map(([text, place]) => text.slice(0, place) + text.slice(place + 1)),
  );
}

const sampleOf = (name: string): string[] => {
  const type = fieldsByName[name]?.type;
  if (type === "phone") return samples["consumerPhone"] ?? [];
  if (type === "flag") return samples["consumerTripIsLocal"] ?? [];
  return samples[name.replace("Destination", "Departure")] ?? samples[name] ?? [];
};
const judgedNames = bookingFields.map(({ name }) => name).filter((name) => sampleOf(name).length > 0);

test("a value gets a warning if and only if the read model has null in its place", async () => {
  const byHand = judgedNames.flatMap((name) => sampleOf(name).map((value) => ({ [name]: value })));
  const generated = judgedNames.flatMap((name) =>
    fc.sample(nearly(sampleOf(name)), { numRuns: 600, seed: 17 }).map((value) => ({ [name]: value })),
  );
  const payloads = toPayloads([...byHand, ...generated]);
  const unreadable = await readUnreadableFields(payloads);

  const judged = payloads.map((payload, index) => ({
    payload,
    warned: findUnreadableFields(payload),
    unreadable: unreadable[index] ?? [],
  }));
  const undisputed = judged.filter(({ payload }) => !disputed.test(JSON.stringify(Object.values(payload))));
  expect(undisputed.length).toBeGreaterThan(4_000);
  expect(undisputed.filter(({ warned, unreadable }) => String(warned) !== String(unreadable))).toEqual([]);
  // Where the database's collation decides, there is a warning at least whenever this one cannot read the value.
  expect(judged.filter(({ warned, unreadable }) => warned.length < unreadable.length)).toEqual([]);
  for (const name of judgedNames) {
    const ofField = undisputed.filter(({ payload }) => name in payload);
    expect(ofField.some(({ unreadable }) => unreadable.length > 0)).toBe(true);
    expect(ofField.some(({ unreadable }) => unreadable.length === 0)).toBe(true);
  }
});

test("the read model can read every other field of a valid payload, dates and e-mail addresses included", async () => {
  const payloads = fc.sample(bookingInput(), { numRuns: 500, seed: 17 });
  const unreadable = await readUnreadableFields(payloads);

  const silent = payloads.flatMap((payload, index) => {
    const warned = new Set(findUnreadableFields(payload));
    return (unreadable[index] ?? []).filter((field) => !warned.has(field));
  });
  expect(silent).toEqual([]);
});
