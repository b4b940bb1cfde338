import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../testing/any-character.ts";
import { cleanReference } from "./clean-reference.ts";

describe("cleanReference", () => {
  test.each([
    ["ordinary text", "BK-2001/a b", "BK-2001/a b"],
    ["case, which counts", "bk-ß-İ", "bk-ß-İ"],
    ["a line break at the end", "S-9\r\n", "S-9"],
    ["tabs and spaces around", "\t S-9 \v\f", "S-9"],
    ["Unicode's white space around", "\u2003S-9\u3000\u2028\u2029\u0085".replace("\u0085", ""), "S-9"],
    ["a no-break space inside", "S\u00a09", "S 9"],
    ["a narrow no-break space and a figure space inside", "1\u202f000\u20072", "1 000 2"],
    ["a no-break space at the end", "S-9\u00a0", "S-9"],
    ["a zero-width space", "S\u200b-9", "S-9"],
    ["a byte order mark", "\ufeffS-9", "S-9"],
    ["a soft hyphen", "S\u00ad-9", "S-9"],
    ["marks of direction", "\u202aS-9\u202c\u200e", "S-9"],
    ["a word joiner, a Hangul filler and a tag", "S\u2060-\u3164\u{e0041}9", "S-9"],
    ["a zero-width space between white space", " \u200b \u200bS-9", "S-9"],
    ["decomposed letters", "Zu\u0308rich-1", "Zürich-1"],
    ["decomposed letters with a joiner between", "Zu\u200d\u0308rich-1", "Zürich-1"],
    ["decomposed Hangul", "\u1112\u1161\u11ab", "한"],
    ["compatibility characters, which stay", "№ ½ ﬁ １", "№ ½ ﬁ １"],
    ["only what is invisible", " \u200b\u00a0\ufeff\r\n", ""],
    ["nothing", "", ""],
  ])("cleans %s", (_, sent, cleaned) => {
    expect(cleanReference(sent)).toBe(cleaned);
  });

  const odd = fc.constantFrom(
    ...[..." \t\r\n\u00a0\u2007\u202f\u2000\u2001\u3000\u2028\u200b\u200d\u00ad\u034f\u061c\ufeff\ufe0f\u3164"],
    ...[
      "\u0301",
      "\u0308",
      "\u0323",
      "\u0344",
      "\u0345",
      "\u0f73",
      "e",
      "é",
      "ü",
      "\u1112",
      "\u1161",
      "\u11ab",
      "\u2126",
    ],
    ...["\ud800", "\udc00", "\0", "x", "-", "😀", "\u{e0100}", "\u{1d15e}"],
    "\u0301".repeat(30),
    "\u0344".repeat(16),
  );

  test("changes nothing the second time", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: odd, maxLength: 40 }), fc.string({ unit: anyCharacter })), (sent) => {
        const cleaned = cleanReference(sent);
        expect(cleanReference(cleaned)).toBe(cleaned);
      }),
      { numRuns: 1_000 },
    );
  });

  test("makes the same of a reference however it is decorated", () => {
    const invisible = fc.string({ unit: fc.constantFrom("\u200b", "\ufeff", "\u00ad", "\u2066"), maxLength: 3 });
    const around = fc.string({ unit: fc.constantFrom(" ", "\r", "\n", "\u00a0", "\u200b", "\t"), maxLength: 4 });
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), around, around, invisible, (text, before, after, between) => {
        const decorated = before + [...text.normalize("NFD")].join(between) + after;
        expect(cleanReference(decorated)).toBe(cleanReference(text));
      }),
    );
  });

  test("leaves a run of more than 31 combining marks as it is, whose order would take long to find", () => {
    const marks = "\u0301\u0323".repeat(16);
    expect(cleanReference(`e${marks} `)).toBe(`e${marks}`);
    expect(cleanReference(`e${marks.slice(2)} `)).toBe(`e${marks.slice(2)}`.normalize("NFC"));
  });

  test("finds such a run anywhere, and takes several shorter ones for none", () => {
    const marks = "\u0301\u0323".repeat(16);
    const shorter = `😀${marks.slice(1)}`.repeat(3);
    expect(cleanReference(shorter)).toBe(shorter.normalize("NFC"));
    for (const text of [`${shorter}e${marks}`, `${marks}${shorter}`, `${shorter}😀${marks}\u0301e`])
      expect(cleanReference(text)).toBe(text);
  });
});
