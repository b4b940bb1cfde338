import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isExactDouble } from "./exact-double.ts";

/** The test's name is shortened because patterns that select tests by name have a length limit. */
const named = (written: string) => [written.slice(0, 30), written] as const;

test.each(
  [
    ["0", "-0", "0.0", "-0.00", "0e5", "0e-999", "0.000e99999999999999999999"],
    ["1", "10.50", "1.0", "0.1", "1.0e2", "1E+2", "100e-2", "1e21", "5e-324", "1.7976931348623157e308"],
    ["0.30000000000000004", "123456789012345", "0.123456789012345"],
    // The same value in different notations.
    [`1.${"0".repeat(60_000)}`, `0.${"0".repeat(30_000)}1e30000`, `1${"0".repeat(30_000)}e-30000`],
  ]
    .flat()
    .map(named),
)("%s is", (_name, written) => expect(isExactDouble(written)).toBe(true));

test.each(
  [
    ["0.1234567890123456789", "9007199254740993", "-9007199254740993", "9007199254740992.5", "0.30000000000000001"],
    ["1e-400", "1e400", "-1e400", "1e-324", "4e-324", "1.00000000000000001", `1.${"0".repeat(60_000)}1`],
    ["1e99999999999999999999", "1e-99999999999999999999"],
  ]
    .flat()
    .map(named),
)("%s is not", (_name, written) => expect(isExactDouble(written)).toBe(false));

test("no number takes long, however many zeros it has", () => {
  const rows = `1${"0".repeat(30_000)}1${"0".repeat(30_000)}`;
  expect(isExactDouble(`0.${rows}`)).toBe(false);
});

/** Uses fractions of BigInts, so nothing is rounded here. */
test("agrees with exact arithmetic", () => {
  const written = fc
    .record({
      sign: fc.constantFrom("", "-"),
      whole: fc.oneof(fc.nat(99).map(String), fc.bigInt(0n, 10n ** 20n).map(String)),
      fraction: fc.oneof(fc.constant(""), fc.stringMatching(/^[0-9]{1,22}$/), fc.stringMatching(/^[0-9]0{1,20}$/)),
      exponent: fc.oneof(
        fc.constant(""),
        fc.integer({ min: -330, max: 310 }).map((exponent) => `e${exponent}`),
      ),
    })
    .map(({ sign, whole, fraction, exponent }) => `${sign}${whole}${fraction && `.${fraction}`}${exponent}`);
  const doubles = fc.double({ noNaN: true, noDefaultInfinity: true }).map(String);
  fc.assert(
    fc.property(fc.oneof(written, doubles), (text) => {
      const double = Number(text);
      const expected = Number.isFinite(double) && inUnits(text) === inUnits(String(double));
      expect(isExactDouble(text)).toBe(expected);
    }),
    randomRuns(500),
  );
});

/** The value in units of 10^-400, without its sign. */
function inUnits(written: string): bigint {
  const [mantissa = "", exponent = "0"] = written.replace(/^-/, "").split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return BigInt(whole + fraction) * 10n ** BigInt(400 + Number(exponent) - fraction.length);
}
