import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../testing/any-character.ts";
import {
  phoneCandidates,
  readAirportCode,
  readCountry,
  readCurrency,
  readDate,
  readEmail,
  readFlag,
  readLanguage,
  readPhone,
  readTimeZone,
} from "./index.ts";

/** Each returns the value as a text, and what senders write, which the generator cuts and joins. */
const readers: [name: string, read: (sent: string) => string | undefined, samples: string[]][] = [
  [
    "a phone number",
    (sent) => readPhone(sent, ["GB", "MX"])?.e164,
    ["+442071838750", "(0)", " ext. 12", "07911 123456"],
  ],
  ["a flag", (sent) => readFlag(sent)?.toString(), ["true", "NO", "ja", "1.0"]],
  ["a language", readLanguage, ["en-US", "zh_Hant_TW", "Portuguese (Brazil)", "iw", "en;q=0.9", "sh"]],
  ["a country", readCountry, ["GB", "GBR", "UK", "Côte d’Ivoire", "St. Lucia", "日本", "the "]],
  ["a currency", readCurrency, ["EUR", "US$", "€"]],
  ["a time zone", readTimeZone, ["Europe/London", "US/Eastern", "W. Europe Standard Time", "UTC+2", "Etc/GMT-2"]],
  ["an airport code", readAirportCode, ["LHR", "lis"]],
  [
    "a date",
    (sent) => dayOf(readDate(sent)),
    ["2026-06-14", "T07:27:17.335Z", "20260614", "+02:00", "[Europe/London]"],
  ],
  ["an e-mail address", readEmail, ["ada@example.com", "Ada <ada@EXAMPLE.com>", "mailto:", ", "]],
];

function dayOf(date: ReturnType<typeof readDate>): string | undefined {
  return typeof date === "object" ? date.day : date === "none" ? "0001-01-01" : undefined;
}

function textsLike(samples: string[]): fc.Arbitrary<string> {
  const piece = fc.oneof(
    fc.constantFrom(...samples),
    fc.constantFrom(...samples.join("")),
    fc.constantFrom(" ", "\n", "\u00a0", "\u200b", "٤", "-", "_", "+", "/", ",", ";", "(", ")", "\ud800", "\0"),
    fc.string({ unit: anyCharacter, maxLength: 3 }),
  );
  return fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(""));
}

describe.each(readers)("%s", (_, read, samples) => {
  test("that was read is read again as itself", () => {
    let count = 0;
    void fc.assert(
      fc.property(fc.oneof(fc.constantFrom(...samples), textsLike(samples)), (sent) => {
        const value = read(sent);
        if (value === undefined) return;
        count += 1;
        expect(read(value)).toBe(value);
      }),
      { numRuns: 500 },
    );
    expect(count).toBeGreaterThan(30);
  });
});

test("a phone number is found by at most a few short texts", () => {
  void fc.assert(
    fc.property(textsLike(["+442071838750", "07911 123456", ";", " / "]), (sent) => {
      const { same, near } = phoneCandidates(sent, ["GB"]);
      expect(same.every((each) => /^\+[1-9][0-9]{3,16}$/.test(each))).toBe(true);
      expect(near.every((each) => /^[0-9]{8}$/.test(each))).toBe(true);
      expect(same.length + near.length).toBeLessThanOrEqual(8);
      // What the value was read as is found by the value.
      const read = readPhone(sent, ["GB"]);
      if (read !== undefined) expect(same).toContain(read.e164);
    }),
    { numRuns: 500 },
  );
});

/** Quadratic time for 8,192 characters would run into the test's time-out. */
test("any value of 8,192 characters is read or left unread", () => {
  const length = 8_192;
  const units = [
    ..." 1+(-./;,@<aéЖ日\u0661\u0301\u200b\0",
    "\ud800",
    "+1",
    "(0)",
    "1;",
    "a-",
    "en-",
    "a/",
    "+1 ",
    "é ",
    "<a@",
    "a@b.",
  ];
  for (const unit of units)
    for (const edge of ["", "x", "+44", "2026-06-14", "@example.com"]) {
      const filled = unit.repeat(length / unit.length);
      for (const sent of [edge + filled, filled + edge])
        for (const [, read] of readers) expect((read(sent) ?? "").length).toBeLessThanOrEqual(sent.length);
    }
});
