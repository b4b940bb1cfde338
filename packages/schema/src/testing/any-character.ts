import * as fc from "fast-check";

const firstSurrogate = 0xd8_00;
const surrogates = 0x8_00;

/** Any code point but surrogates. fast-check's unit "binary" is the same, and first lists them all, which takes seconds. */
export const anyCharacter: fc.Arbitrary<string> = fc.nat({ max: 0x10_ff_ff - surrogates }).map(
  (number) => String.fromCodePoint(number < firstSurrogate ? number : number + surrogates),
  (character) => {
    // Thrown to fast-check, which asks this of texts that it likes to try.
    if (typeof character !== "string" || !/^\P{Surrogate}$/u.test(character)) throw new TypeError("Not a character.");
    const code = character.codePointAt(0) ?? 0;
    return code < firstSurrogate ? code : code - surrogates;
  },
);
