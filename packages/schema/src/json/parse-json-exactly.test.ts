import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxJsonValues } from "../payload/count-json-values.ts";
import { ExactNumber } from "./exact-number.ts";
import { JsonError, parseJsonExactly, parseJsonSlowly } from "./parse-json-exactly.ts";

/**
 * Texts with everything that JSON allows (white space, escapes, numbers in any notation, nesting), each with its value.
 * `JSON.parse` can't give the value of a whole text, since V8 may read escaped names wrongly (see `parseJson`).
 */
interface Written {
  text: string;
  value: unknown;
}
const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);
const number = fc
  .stringMatching(/^-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?([eE][-+]?[0-9]{1,2})?$/)
  .map((text): Written => ({ text, value: Number(text) }));
const string = fc
  .stringMatching(/^([ !#-[\]-~é😀]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,6}$/u)
  .map((content) => `"${content}"`)
  .map((text) => ({ text, value: JSON.parse(text) as string }));
const word = fc
  .constantFrom<[string, unknown]>(["true", true], ["false", false], ["null", null])
  .map(([text, value]): Written => ({ text, value }));

function toArray(items: Written[]): Written {
  return { text: `[${items.map(({ text }) => text).join()}]`, value: items.map(({ value }) => value) };
}

function toObject(fields: { text: string; name: string; value: unknown }[]): Written {
  const text = `{${fields.map((field) => field.text).join()}}`;
  return { text, value: Object.fromEntries(fields.map(({ name, value }) => [name, value])) };
}

const { written } = fc.letrec<{ written: Written; unspaced: Written }>((tie) => {
  const field = fc.tuple(space, string, space, tie("written")).map(([before, name, after, { text, value }]) => ({
    ...{ text: `${before}${name.text}${after}:${text}`, name: name.value, value },
  }));
  return {
    written: fc
      .tuple(space, tie("unspaced"), space)
      .map(([before, { text, value }, after]) => ({ text: `${before}${text}${after}`, value })),
    unspaced: fc.oneof(
      { maxDepth: 4 },
      { weight: 3, arbitrary: fc.oneof(number, string, word) },
      fc.array(tie("written"), { maxLength: 4 }).map(toArray),
      fc.uniqueArray(field, { maxLength: 4, selector: ({ name }) => name }).map(toObject),
      space.map((blanks) => ({ text: `[${blanks}]`, value: [] })),
      space.map((blanks) => ({ text: `{${blanks}}`, value: {} })),
    ),
  };
});
const json = written.map(({ text }) => text);

describe("the parsed value", () => {
  test("is what was written", () => {
    fc.assert(
      fc.property(written, ({ text, value }) => {
        expect(parseJsonExactly(text)).toStrictEqual(value);
        expect(parseJsonSlowly(text)).toStrictEqual(value);
      }),
    );
  });

  test("does not exist if JSON.parse refuses the text", () => {
    const almost = fc
      .tuple(
        json,
        fc.nat(),
        fc.nat(3),
        fc.constantFrom("", ",", "]", "}", ":", '"', "0", "-", ".", "e", "\\", "\ufeff"),
      )
      .map(([text, at, count, other]) => {
        const start = at % (text.length + 1);
        return text.slice(0, start) + other + text.slice(start + count);
      });
    fc.assert(
      fc.property(fc.oneof(almost, fc.string()), (text) => {
        const fault = faultOf(text);
        if (isJson(text)) expect(fault?.kind).not.toBe("malformed");
        else expect(fault).toBeDefined();
      }),
      randomRuns(500),
    );
  });

  test("keeps __proto__ as an ordinary key", () => {
    const object = parseJsonExactly('{"__proto__": {"isAdmin": true}, "constructor": 1}') as Record<string, unknown>;
    expect(Object.keys(object)).toEqual(["__proto__", "constructor"]);
    expect(object["isAdmin"]).toBeUndefined();
  });

  test("has an exact number for each one that a double would change", () => {
    const text = "[0.1, 10.50, 1e-400, 0.1234567890123456789, -0, 1.0e2, -1E400]";
    const exact = ["1e-400", "0.1234567890123456789", "-1E400"].map((digits) => new ExactNumber(digits));
    const numbers = [0.1, 10.5, exact[0], exact[1], -0, 100, exact[2]];
    expect(parseJsonExactly(text)).toStrictEqual(numbers);
    expect(parseJsonSlowly(text)).toStrictEqual(numbers);
  });

  test("rounds numbers after as many as a payload may have values, because it is refused anyway", () => {
    const text = (count: number) => `[${"1,".repeat(count - 1)}9007199254740993]`;
    const lastOf = (value: unknown) => (value as unknown[]).at(-1);
    const exact = new ExactNumber("9007199254740993");
    expect(lastOf(parseJsonExactly(text(maxJsonValues)))).toStrictEqual(exact);
    expect(lastOf(parseJsonExactly(text(maxJsonValues + 1)))).toBe(2 ** 53);
    expect(lastOf(parseJsonSlowly(text(maxJsonValues + 1)))).toStrictEqual(exact);
  });
});

describe("a malformed text", () => {
  test("is reported at the first character that cannot continue valid JSON", () => {
    // This character is nowhere valid in JSON, and every prefix of valid JSON can be continued.
    fc.assert(
      fc.property(json, fc.nat(), (text, at) => {
        const offset = at % (text.length + 1);
        expect(faultOf(`${text.slice(0, offset)}\u0001${text.slice(offset)}`)).toMatchObject(positionIn(text, offset));
      }),
    );
  });

  test("is reported at its end if it is truncated", () => {
    fc.assert(
      fc.property(json, fc.nat(), (text, at) => {
        const cut = text.slice(0, at % (text.length + 1));
        fc.pre(!isJson(cut));
        expect(faultOf(cut)).toMatchObject({ kind: "malformed", ...positionIn(cut, cut.length) });
      }),
    );
  });

  test.each([
    ["", 1, 1],
    ["  ", 1, 3],
    ["\r\n \n", 3, 1],
    ['{"a":1,}', 1, 8],
    ["{'a':1}", 1, 2],
    ['{"a":1} x', 1, 9],
    ['{\n  "a": NaN\n}', 2, 8],
    ['{"😀":1 "b":2}', 1, 9],
    ['["\\x"]', 1, 4],
    ['["\\u12g4"]', 1, 7],
    ['["a\nb"]', 1, 4],
    ["[01]", 1, 3],
    ["[1.]", 1, 4],
    ["[-]", 1, 3],
    ["[1e+]", 1, 5],
    ["[1e+-1]", 1, 5],
    ['{\\"a":1}', 1, 2],
    ["\r \r[x", 3, 2],
    ["[trux]", 1, 5],
    ["\ufeff{}", 1, 1],
    ["\u00a0{}", 1, 1],
  ])("%j is reported at line %i, column %i", (text, line, column) => {
    expect(faultOf(text)).toMatchObject({ name: "JsonError", message: "malformed", kind: "malformed", line, column });
  });
});

describe("a duplicate key", () => {
  test.each([
    ['{"a":1,"a":1}', 8],
    ['{"a":1,"b":2,"\\u0061":3}', 14],
    ['{"a":{"b":[{"c":1 , "c" :2}]}}', 21],
    ['{"__proto__":1,"__proto__":1}', 16],
    ['{"":0,"":0}', 7],
    ['{"\\ud800":0,"\\uD800":0}', 13],
    ['{"0":0,"1":0,"0":0}', 14],
  ])("%s: is reported at its second position", (text, column) => {
    expect(faultOf(text)).toMatchObject({ kind: "repeated-key", line: 1, column });
  });

  test.each([
    '{"a":{"a":1},"b":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":1,"A":1}',
    '{"é":1,"e\u0301":1}',
    '{"toString":1}',
  ])("%s: is none", (text) => expect(faultOf(text)).toBeUndefined());
});

test.each([
  ["closed arrays", `${"[".repeat(32_768)}${"]".repeat(32_768)}`, undefined],
  ["open arrays", "[".repeat(65_536), "malformed"],
  ["objects", `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`, undefined],
  ["a duplicate key inside them", `${'{"a":'.repeat(9_000)}{"b":1,"b":1}${"}".repeat(9_000)}`, "repeated-key"],
])("nesting does not matter: %s", (_what, text, kind) => expect(faultOf(text)?.kind).toBe(kind));

function faultOf(text: string): JsonError | undefined {
  try {
    parseJsonExactly(text);
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function positionIn(text: string, offset: number): { line: number; column: number } {
  let [line, column] = [1, 1];
  for (let index = 0; index < offset; index += 1) {
    const isNewLine = text[index] === "\n" ? text[index - 1] !== "\r" : text[index] === "\r";
    if (isNewLine) line += 1;
    column = text[index] === "\n" || text[index] === "\r" ? 1 : column + 1;
  }
  return { line, column };
}
