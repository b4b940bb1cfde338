import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { JsonError, parseJsonExactly } from "./parse-json-exactly.ts";
import { parseJsonObject, readJsonObject } from "./parse-json-object.ts";

test.each([
  ["[]", "not-an-object 1 1"],
  ["null", "not-an-object 1 1"],
  ['"{}"', "not-an-object 1 1"],
  ['{"a":1,\n}', "malformed 2 1"],
  ['{"a":1,"a":1}', "repeated-key 1 8"],
])("%s is refused as %s", (text, refusal) => {
  expect(tryOut(() => parseJsonObject(text))).toBe(refusal);
});

/** The exact parser may be skipped only if a cheaper proof shows that it is not needed. */
test("an object is parsed as by the exact parser, however it is written", () => {
  const key = fc.constantFrom('""', '"a"', '"\\u0061"', '"b"', '"0"', '"\\""', '"é"', '"__proto__"');
  const scalar = fc.constantFrom(...['""', "null", "true", "0", "1e-7", "1e-400", "0.10", `0.${"1".repeat(20)}`]);
  const blank = fc.constantFrom("", "", " ", "\n  ");
  const value = fc.oneof(scalar, key, fc.constantFrom("[]", "{}", "[1,[2]]", '{"a":"x","b":1}', '[{"a":0,"a":0}]'));
  const field = fc.tuple(blank, key, blank, value).map(([before, name, after, of]) => `${before}${name}${after}:${of}`);
  const texts = fc.oneof(
    fc.array(field, { maxLength: 5 }).map((fields) => `{${fields.join()}}`),
    // As most senders write it: without white space, and only strings.
    fc.array(fc.tuple(key, key), { maxLength: 4 }).map((fields) => `{${fields.map((pair) => pair.join(":")).join()}}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(tryOut(() => parseJsonObject(text))).toEqual(tryOut(() => parseJsonExactly(text)));
    }),
    randomRuns(1_000),
  );
});

function tryOut(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    if (error instanceof JsonError) return `${error.kind} ${error.line} ${error.column}`;
    throw error;
  }
}

test.each([
  ['{"a":"Zoë","b":null}', true],
  ['{"b":"x","1":"y"}', true],
  ['{"a": "b"}', false],
  ['{"a":"\\u0061"}', false],
  ['{"a":["b"]}', false],
  ['{"a":1}', false],
])("%s is compact: %s", (text, isCompact) => {
  expect(readJsonObject(text)).toEqual({ object: JSON.parse(text), isCompact });
});
