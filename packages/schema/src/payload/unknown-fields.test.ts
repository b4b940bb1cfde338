import { describe, expect, test } from "vitest";
import { ExactNumber, maxNestingLevels, maxViolations, validatePayload } from "../index.ts";

const reference = { consumerTripPartnerExternalReference: "booking-2001" };

/** Nests `levels` objects or arrays. */
function nest(levels: number, kind: "arrays" | "objects"): unknown {
  let value: unknown = kind === "arrays" ? [] : {};
  for (let level = 1; level < levels; level += 1) value = kind === "arrays" ? [value] : { inner: value };
  return value;
}

describe.each(["create", "update", "delete"] as const)("unlisted fields: %s", (kind) => {
  const violationsOf = (fields: object) => {
    const result = validatePayload(kind, { ...reference, ...fields });
    return result.success ? [] : result.violationList;
  };

  test.each([
    ["text", "any text, as long as it may be: ".repeat(1_000)],
    ["empty text", ""],
    ["a line break and a tab", "\n\t"],
    ["a surrogate pair", "😀"],
    ["what is replaced before it is stored", "\0\ud800"],
    ["true", true],
    ["null", null],
    ["zero", 0],
    ["negative zero", -0],
    ["a large integer", 2 ** 60],
    ["the largest number", Number.MAX_VALUE],
    ["a number that no double holds", new ExactNumber("9007199254740993")],
    ["a number of 1,000 digits", new ExactNumber("-1e999")],
    ["a number of 999 digits after the point", new ExactNumber("1e-999")],
    ["a fraction", -0.1],
    ["the smallest fraction", Number.MIN_VALUE],
    ["an empty array", []],
    ["an empty object", {}],
    ["an object without a prototype", Object.assign(Object.create(null), { tier: "gold" })],
  ])("may hold %s", (_, value) => {
    expect(violationsOf({ extra: value, list: [value], object: { value } })).toEqual([]);
  });

  test.each([
    ["a number of 1,001 digits", new ExactNumber("1e1000"), "at most 1,000 digits"],
    ["a number of 1,000 digits after the point", new ExactNumber("-1e-1000"), "at most 1,000 digits"],
    ["a number of endless digits", new ExactNumber("1e99999999999999999999"), "at most 1,000 digits"],
    ["Infinity", Number.POSITIVE_INFINITY, "JSON value"],
    ["NaN", Number.NaN, "JSON value"],
    ["a BigInt", 1n, "JSON value"],
    ["a function", () => 1, "JSON value"],
    ["a symbol", Symbol("s"), "JSON value"],
    ["a Date", new Date(0), "JSON value"],
    ["a Map", new Map(), "JSON value"],
  ])("may not hold %s, at any depth", (_, value, rule) => {
    const message = expect.stringContaining(rule);
    expect(violationsOf({ extra: value, deep: { list: ["fine", { value }] } })).toEqual([
      { message, code: expect.any(String), propertyPath: ["extra"] },
      { message, code: expect.any(String), propertyPath: ["deep", "list", "1", "value"] },
    ]);
  });

  test("may have undefined members, which count as absent, but not undefined items, which JSON has not", () => {
    expect(violationsOf({ extra: undefined, object: { value: undefined } })).toEqual([]);
    expect(violationsOf({ list: [undefined] })).toMatchObject([{ code: "not-json", propertyPath: ["list", "0"] }]);
  });

  test("may hold numbers of 20,000 digits together", () => {
    const numbers = Array.from({ length: 20 }, () => new ExactNumber("1e999"));
    const longest = new ExactNumber("1e-999");

    expect(violationsOf({ numbers })).toEqual([]);
    expect(violationsOf({ numbers: [...numbers.slice(1), { longest }] })).toEqual([]);
    for (const more of [0, -7, new ExactNumber("1e500"), [1, 2, 3]]) {
      const message = expect.stringContaining("at most 20,000 digits together");
      expect(violationsOf({ numbers, more })).toEqual([{ message, code: "too-many-digits", propertyPath: [] }]);
    }
    expect(violationsOf({ numbers, more: new ExactNumber("1e1000") })).toMatchObject([{ propertyPath: ["more"] }]);
  });

  test.each(["arrays", "objects"] as const)("may be nested 16 levels deep, counting %s and the payload", (values) => {
    const propertyPath = ["deep", ...Array.from({ length: 15 }, () => (values === "arrays" ? "0" : "inner"))];

    expect(maxNestingLevels).toBe(16);
    expect(violationsOf({ deep: nest(15, values) })).toEqual([]);
    expect(violationsOf({ deep: nest(16, values) })).toEqual([
      { message: expect.stringContaining("at most 16 levels"), code: expect.any(String), propertyPath },
    ]);
  });

  test("64 KiB of brackets do not overflow the stack", () => {
    const depth = 32_000;
    const deep: unknown = JSON.parse("[".repeat(depth) + "]".repeat(depth));

    expect(violationsOf({ deep })).toHaveLength(1);
    expect(violationsOf({ deep: { a: [deep, deep] } })).toHaveLength(1);
  });

  test("every value that is nested too deeply is reported", () => {
    const deep = nest(900, "arrays");

    expect(violationsOf({ deep: { a: [deep, deep] } })).toHaveLength(2);
  });

  test("the check of a circular object ends", () => {
    const cycle: Record<string, unknown> = {};
    Object.assign(cycle, { a: cycle, b: cycle, c: [cycle, cycle] });

    expect(violationsOf({ cycle })).toHaveLength(1);
  });

  test("a long name is truncated, so an answer cannot be much larger than its payload", () => {
    const name = "n".repeat(60_000);

    const violations = violationsOf({ [name]: Array.from({ length: 60 }, () => Number.NaN) });

    expect(violations).toHaveLength(maxViolations);
    expect(violations[49]?.propertyPath).toEqual([`${"n".repeat(255)}…`, "49"]);
  });

  test.each([
    ["a pair that truncation would split", `${"n".repeat(254)}😀x`, `${"n".repeat(254)}…`],
    ["a pair before the end", `${"n".repeat(253)}😀x`, `${"n".repeat(253)}😀…`],
    ["a pair after the end", `${"n".repeat(255)}😀`, `${"n".repeat(255)}…`],
    ["a high surrogate at the end", `${"n".repeat(254)}\ud83dx`, `${"n".repeat(254)}\ufffd…`],
    ["a low surrogate at the end", `${"n".repeat(254)}\ude00x`, `${"n".repeat(254)}\ufffd…`],
    ["an unpaired surrogate in a short name", "note\udc00", "note\ufffd"],
    ["a pair that fits", `${"n".repeat(253)}😀`, `${"n".repeat(253)}😀`],
  ])("a propertyPath has no unpaired surrogate: %s", (_, name, expected) => {
    const [violation] = violationsOf({ outer: { [name]: Number.NaN } }).slice(-1);

    expect(violation?.propertyPath).toEqual(["outer", expected]);
  });
});
