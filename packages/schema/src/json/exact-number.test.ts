import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { countDigits, ExactNumber, isJsonNumber, toCanonicalNumber, toNumber } from "./exact-number.ts";

const exact = (digits: string) => new ExactNumber(digits);

test("a number that a double holds is one, and any other keeps its digits", () => {
  expect([toNumber("1.0e2"), toNumber("-0"), toNumber("10.50")]).toEqual([100, -0, 10.5]);
  expect(toNumber("9007199254740993")).toEqual(exact("9007199254740993"));
  expect(toNumber("1E400")).toEqual(exact("1E400"));
});

test("JSON.stringify writes an exact number as it was", () => {
  const value = { a: [exact("9007199254740993.10"), exact("-1E+400")], b: 1 };
  expect(JSON.stringify(value)).toBe('{"a":[9007199254740993.10,-1E+400],"b":1}');
});

test("a runtime that cannot write an exact number says so", () => {
  const runtime = JSON as { rawJSON?: unknown };
  const { rawJSON } = runtime;
  onTestFinished(() => {
    runtime.rawJSON = rawJSON;
  });
  delete runtime.rawJSON;
  expect(() => JSON.stringify({ a: new ExactNumber("1e400") })).toThrow("before Node 22");
});

test("what JSON cannot express is no JSON number", () => {
  for (const value of [0, -1.5, exact("1e400")]) expect(isJsonNumber(value)).toBe(true);
  for (const value of [Number.NaN, Number.NEGATIVE_INFINITY, "1", 1n, null]) expect(isJsonNumber(value)).toBe(false);
});

describe("digits before and after the point", () => {
  test.each([
    ["0", 1, 0],
    ["-7", 1, 0],
    ["120", 3, 0],
    ["0.5", 1, 1],
    ["0.050", 1, 3],
    ["12.50", 2, 2],
    ["1e999", 1_000, 0],
    ["1.5e999", 1_000, 0],
    ["-1.25E+1", 2, 1],
    ["125e-4", 1, 4],
    ["1e-999", 1, 999],
    ["0.001e3", 1, 0],
    ["0.0012e3", 1, 1],
    ["1e99999999999999999999", 1e20, 0],
    ["1e-99999999999999999999", 1, 1e20],
  ])("of %s", (digits, before, after) => {
    expect(countDigits(exact(digits))).toEqual({ before, after });
  });

  test("of a double, as it is printed", () => {
    expect([1e21, 5e-324, 0.1, -12].map((value) => countDigits(value))).toEqual([
      { before: 22, after: 0 },
      { before: 1, after: 324 },
      { before: 1, after: 1 },
      { before: 2, after: 0 },
    ]);
  });
});

describe("the canonical form", () => {
  test("of a number that a double holds is that of JSON.stringify", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(toCanonicalNumber(exact(String(value)))).toBe(JSON.stringify(value));
        expect(toCanonicalNumber(value)).toBe(JSON.stringify(value));
      }),
      randomRuns(500),
    );
  });

  test("is the same for the same value, and for no other", () => {
    const written = fc
      .record({
        sign: fc.constantFrom("", "-"),
        whole: fc.oneof(fc.nat(99).map(String), fc.bigInt(0n, 10n ** 24n).map(String)),
        fraction: fc.oneof(fc.constant(""), fc.stringMatching(/^[0-9]{1,22}$/), fc.stringMatching(/^0{1,9}$/)),
        exponent: fc.oneof(
          fc.constant(""),
          fc.integer({ min: -430, max: 430 }).map((exponent) => `e${exponent}`),
        ),
      })
      .map(({ sign, whole, fraction, exponent }) => `${sign}${whole}${fraction && `.${fraction}`}${exponent}`);
    fc.assert(
      fc.property(written, fc.integer({ min: -30, max: 30 }), (text, shift) => {
        const canonical = toCanonicalNumber(exact(text));
        expect(inUnits(canonical)).toBe(inUnits(text));
        // The same value with its point elsewhere.
        const other = shifted(text, shift);
        expect(inUnits(other)).toBe(inUnits(text));
        expect(toCanonicalNumber(exact(other))).toBe(canonical);
        expect(toCanonicalNumber(toNumber(text))).toBe(canonical);
      }),
      randomRuns(500),
    );
  });

  test.each([
    ["9007199254740993", "9007199254740993"],
    ["123456789012345678901.5", "123456789012345678901.5"],
    ["1234567890123456789012", "1.234567890123456789012e+21"],
    ["0.000001234567890123456789", "0.000001234567890123456789"],
    ["0.0000001234567890123456789", "1.234567890123456789e-7"],
    ["-10E399", "-1e+400"],
    [`1${"0".repeat(400)}.000`, "1e+400"],
  ])("of %s is %s", (digits, canonical) => expect(toCanonicalNumber(exact(digits))).toBe(canonical));
});

/** The value in units of 10^-500. */
function inUnits(written: string): bigint {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:e([-+]?[0-9]+))?$/.exec(written) ?? [];
  const units = BigInt(whole + fraction) * 10n ** BigInt(500 + Number(exponent) - fraction.length);
  return sign === "-" ? -units : units;
}

function shifted(written: string, by: number): string {
  const [mantissa = "", exponent = "0"] = written.split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  if (by >= 0) return `${whole}${fraction}${"0".repeat(by)}e${Number(exponent) - fraction.length - by}`;
  return `${mantissa}${fraction === "" ? "." : ""}${"0".repeat(-by)}e${exponent}`;
}
