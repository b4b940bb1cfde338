import { randomRuns } from "@booking-events/harness/random-runs";
import * as fc from "fast-check";
import metadata from "libphonenumber-js/min/metadata";
import { describe, expect, test } from "vitest";
import { phoneCandidates, readPhone, writtenDigits } from "./phone.ts";
import { isTidyNumber } from "./tidy-number.ts";

describe("a number with a calling code is read", () => {
  test.each([
    // As it should be
    ["+442071838750", "+442071838750"],
    ["+15550100123", "+15550100123"],
    ["+393331234567", "+393331234567"],
    ["+80012345678", "+80012345678"],
    // Punctuation
    ["+44 20 7183 8750", "+442071838750"],
    ["+44 (20) 7183-8750", "+442071838750"],
    ["+44.20.7183.8750", "+442071838750"],
    ["+44_20_7183_8750", "+442071838750"],
    ["+44/20/7183.8750", "+442071838750"],
    ["(+44) 2071838750", "+442071838750"],
    ["+(44) 2071838750", "+442071838750"],
    ["+1-242-555-0100", "+12425550100"],
    ["\t+44\t20 7183 8750\r\n", "+442071838750"],
    // The international prefix, written or doubled
    ["0044 20 7183 8750", "+442071838750"],
    ["00 1 613 555 0100", "+16135550100"],
    ["(0044) 20 7183 8750", "+442071838750"],
    ["+0044 20 7183 8750", "+442071838750"],
    ["++442071838750", "+442071838750"],
    ["+ (+44) 20 7183 8750", "+442071838750"],
    // A trunk prefix that is no part of the number
    ["+44 (0)20 7183 8750", "+442071838750"],
    ["+44-(0)-2071838750", "+442071838750"],
    ["+44 [0] 2071838750", "+442071838750"],
    ["+44 07911 123456", "+447911123456"],
    ["+4407911123456", "+447911123456"],
    ["+49 030 123456", "+4930123456"],
    ["+36 06 20 123 4567", "+36201234567"],
    ["+7 8 912 345 67 89", "+79123456789"],
    ["+55 (011) 98765-4321", "+5511987654321"],
    ["+55 0 15 11 98765-4321", "+5511987654321"],
    ["+375 8 029 123 45 67", "+375291234567"],
    ["+370 8 612 34567", "+37061234567"],
    ["+972 054-123-4567", "+972541234567"],
    ["+33 000 1 23 45 67 89", "+33123456789"],
    // A zero that nobody dials in this country
    ["+34 0 612 345 678", "+34612345678"],
    ["+351 (0)912 345 678", "+351912345678"],
    ["+420 0 777 123 456", "+420777123456"],
    ["+65 (0) 8123 4567", "+6581234567"],
    ["+39 (0)333 123 4567", "+393331234567"],
    // A zero that is part of the number
    ["+39 (0)6 1234 5678", "+390612345678"],
    ["+390612345678", "+390612345678"],
    ["+225 07 01 02 03 04", "+2250701020304"],
    ["+242 06 612 3456", "+242066123456"],
    ["+241 06 12 34 56", "+24106123456"],
    ["+378 0549 123456", "+3780549123456"],
    ["+290 0000", "+2900000"],
    // A digit that looks like a prefix
    ["+7 800 555 35 35", "+78005553535"],
    ["+39 131 1234 5678", "+3913112345678"],
    // Mexico's former 1, Argentina's 15
    ["+52 1 55 1234 5678", "+525512345678"],
    ["+5215512345678", "+525512345678"],
    ["+52 00 55 1234 5678", "+525512345678"],
    ["+525512345678", "+525512345678"],
    ["+54 9 11 1234 5678", "+5491112345678"],
    ["+54 11 15 1234 5678", "+5491112345678"],
    // Extensions
    ["+442071838750x123", "+442071838750"],
    ["+44 20 7183 8750 ext. 12", "+442071838750"],
    ["+44 20 7183 8750, ext 12", "+442071838750"],
    ["tel:+44-20-7183-8750;ext=12", "+442071838750"],
    ["+7 495 123-45-67 доб. 12", "+74951234567"],
    ["+1 555 010 0123 #12", "+15550100123"],
    // Several numbers: the first
    ["+44 20 7183 8750 / +44 7911 123456", "+442071838750"],
    ["+44 20 7183 8750; +44 7911 123456", "+442071838750"],
    ["+442071838750\n+447911123456", "+442071838750"],
    ["+44 20 7183 8750 or +44 7911 123456", "+442071838750"],
    ["n/a, +44 20 7183 8750", "+442071838750"],
    ["+44 20 7183 8750 / 51", "+442071838750"],
    ["+44 20 7183 8750/51", "+442071838750"],
    ["1234, +44 20 7183 8750", "+442071838750"],
    ["n/a, 12, 12, 12, 12, +44 20 7183 8750", "+442071838750"],
    ["+49 30/1234567", "+49301234567"],
    // Words around it
    ["Tel.: +44 20 7183 8750", "+442071838750"],
    ["+44 20 7183 8750 (mobile)", "+442071838750"],
    ["WhatsApp +44 7911 123456", "+447911123456"],
    ["+442071838750, ".padEnd(250, "x"), "+442071838750"],
    [`${" ".repeat(250)}+442071838750`, "+442071838750"],
    // Other scripts, and what nobody sees
    ["＋４４２０７１８３８７５０", "+442071838750"],
    ["+٤٤ ٢٠ ٧١٨٣ ٨٧٥٠", "+442071838750"],
    ["+۴۴۲۰۷۱۸۳۸۷۵۰", "+442071838750"],
    ["+४४२०७१८३८७५०", "+442071838750"],
    ["+৪৪২০৭১৮৩৮৭৫০", "+442071838750"],
    ["+44−20−7183–8750", "+442071838750"],
    ["+44\u00a020\u20097183\u202f8750", "+442071838750"],
    ["\u202a+442071838750\u202c", "+442071838750"],
    ["+44\u200b2071838750", "+442071838750"],
    // What spreadsheets and pandas make of it
    ["'+442071838750", "+442071838750"],
    ["=+442071838750", "+442071838750"],
    ["+442071838750.0", "+442071838750"],
  ])("%j", (sent, e164) => {
    expect(readPhone(sent, [])).toEqual({ e164, isAssumed: false });
  });
});

describe("a number without a calling code is read in a country", () => {
  test.each([
    ["07911 123456", ["GB"], "+447911123456"],
    ["020 7183 8750", ["GB"], "+442071838750"],
    ["07911123456.0", ["GB"], "+447911123456"],
    // A point that is punctuation
    ["0207183.0875", ["GB"], "+442071830875"],
    ["020 7183875.0", ["GB"], "+442071838750"],
    ["912 345 678", ["PT"], "+351912345678"],
    ["(242) 555-0100", ["BS"], "+12425550100"],
    ["06 1234 5678", ["IT"], "+390612345678"],
    ["07 01 02 03 04", ["CI"], "+2250701020304"],
    ["06 20 123 4567", ["HU"], "+36201234567"],
    ["8 (912) 345-67-89", ["RU"], "+79123456789"],
    ["044 55 1234 5678", ["MX"], "+525512345678"],
    ["011 15 1234 5678", ["AR"], "+5491112345678"],
    ["09876543210", ["IN"], "+919876543210"],
    ["+0171 1234567", ["DE"], "+491711234567"],
    // The calling code without +, and international prefixes
    ["447911123456", ["GB"], "+447911123456"],
    ["011 44 20 7183 8750", ["US"], "+442071838750"],
    ["0011 44 7911 123456", ["AU"], "+447911123456"],
    ["010 44 7911 123456", ["JP"], "+447911123456"],
    // The first country in which it is valid
    ["912 345 678", ["GB", "PT"], "+351912345678"],
    ["07911 123456", ["AQ", "FR", "GB"], "+447911123456"],
    ["020 7183 8750 / 07911 123456", ["GB"], "+442071838750"],
  ])("%j in %j", (sent, countries, e164) => {
    expect(readPhone(sent, countries)).toEqual({ e164, isAssumed: true });
  });
});

describe("no number is read from", () => {
  test.each([
    ["nothing", "", []],
    ["blanks", " \n", ["GB"]],
    ["a word", "unknown", ["GB"]],
    ["a national number without a country", "07911 123456", []],
    ["a number that is none in the country", "912 345 678", ["GB"]],
    ["a local number", "555-0100", ["US"]],
    ["a calling code without +", "447911123456", ["FR"]],
    ["a calling code that does not exist", "+999 1234567", []],
    ["too few digits", "+44 20 7183", []],
    ["too many digits", "+44 20 7183 8750 8750", []],
    ["letters for digits", "+1 800 FLOWERS", []],
    ["digits that were lost", "4.47911E+11", ["GB"]],
    ["a plus sign", "+", []],
    ["zeros", "0000000000", ["GB"]],
    ["a number in a long text", `+442071838750${" ".repeat(250)}x`, []],
    ["one of several in a long text", "+442071838750, ".padEnd(251, "x"), []],
    ["what would be another country's number without its plus sign", "+912 345 678", ["PT"]],
    ["a country that does not exist", "07911 123456", ["ZZ", "", "__proto__"]],
  ])("%s", (_, sent, countries) => {
    expect(readPhone(sent, countries)).toBeUndefined();
  });
});

describe("a number is found by", () => {
  test.each([
    ["its E.164 form and its last digits", "+44 (0)20 7183 8750", ["+442071838750"], ["71838750"]],
    ["the same without its extension", "+44 20 7183 8750 ext. 12", ["+442071838750"], ["71838750"]],
    [
      "each of several",
      "+44 20 7183 8750 / 07911 123456",
      ["+442071838750", "+447911123456"],
      ["71838750", "11123456"],
    ],
    ["its last digits if no other country has it", "912 345 678", [], ["12345678"]],
    ["its last digits without the extension", "912 345 678 ext. 12", [], ["12345678"]],
    ["its last digits without the extension, before another number", "912 345 678 x 12 / +33", [], ["12345678"]],
    ["its last digits, with a word before it that stands before extensions", "int 912 345 678", [], ["12345678"]],
    ["its eight digits", "5550 1000", [], ["55501000"]],
    ["its E.164 form alone if it is short", "+2904000", ["+2904000"], []],
    ["nothing if it is too short", "555-0100", [], []],
    ["nothing if it is too short without the trunk prefix", "(0)123 4567", [], []],
    ["nothing if there is none", "none", [], []],
  ])("%s", (_, sent, same, near) => {
    expect(phoneCandidates(sent, ["GB"])).toEqual({ same, near });
  });

  test.each(["\tor\t", "\u00a0or\u00a0", "_or_"])("each of two between which %j stands", (between) => {
    expect(phoneCandidates(`+44 20 7183 8750${between}+44 7911 123456`, []).same).toEqual([
      "+442071838750",
      "+447911123456",
    ]);
  });

  test("the same, however it is written", () => {
    const forms = ["+5215512345678", "+52 1 55 1234 5678", "+52 55 1234 5678", "0052 55 1234 5678", "044 55 1234 5678"];
    for (const form of forms) expect(phoneCandidates(form, ["MX"]).same).toEqual(["+525512345678"]);
  });

  test("what resembles it, without a calling code and with another prefix", () => {
    for (const form of ["07911 123456", "447911123456", "+33 7911123456"])
      expect(phoneCandidates(form, []).near).toEqual(phoneCandidates("+447911123456", []).near);
  });

  test("four numbers at most", () => {
    const sent = Array.from({ length: 6 }, (_, index) => `+44207183875${index}`).join(";");
    expect(phoneCandidates(sent, []).same).toHaveLength(4);
  });
});

test.each([
  ["+44 (0)20 7183 8750", "442071838750"],
  ["0044 20 7183 8750", "442071838750"],
  ["020 7183 0050", "02071830050"],
  ["+٤٤ ٢٠ ٧١٨٣ ٨٧٥٠", "442071838750"],
  ["1".repeat(251), "1".repeat(250)],
])("the written digits of %j", (sent, digits) => {
  expect(writtenDigits(sent)).toBe(digits);
});

/** Of every calling code, with and without the prefixes that people write. */
const numbers = fc
  .tuple(
    fc.constantFrom(...Object.keys(metadata.country_calling_codes), ...Object.keys(metadata.nonGeographic)),
    fc.constantFrom("", "0", "1", "8", "00"),
    fc.stringMatching(/^[0-9]{3,13}$/),
  )
  .map(([code, prefix, digits]) => ({ code, national: prefix + digits }));

test("the quick check says what the library would", () => {
  let tidy = 0;
  void fc.assert(
    fc.property(numbers, ({ code, national }) => {
      const sent = `+${code}${national}`;
      // The blank makes the library read it.
      expect(readPhone(sent, [])).toEqual(readPhone(`+${code} ${national}`, []));
      expect(phoneCandidates(sent, []).same).toEqual(phoneCandidates(`+${code} ${national}`, []).same);
      if (isTidyNumber(sent)) tidy += 1;
    }),
    randomRuns(300),
  );
  expect(tidy).toBeGreaterThan(10);
});

test("a number that was read is read again as itself", () => {
  void fc.assert(
    fc.property(numbers, fc.constantFrom("GB", "IT", "MX", "US"), ({ code, national }, country) => {
      for (const sent of [`+${code} ${national}`, national]) {
        const phone = readPhone(sent, [country]);
        if (phone !== undefined) expect(readPhone(phone.e164, [])).toEqual({ ...phone, isAssumed: false });
      }
    }),
    {
      // Below a zero, Brazil has another prefix: 90 is dialled for a collect call.
      examples: [[{ code: "55", national: "090800000000" }, "GB"]],
      ...randomRuns(300),
    },
  );
});
