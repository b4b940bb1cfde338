import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber } from "./exact-number.ts";
import { mayHaveEscapedName, parseJson } from "./parse-json.ts";
import { parseJsonSlowly } from "./parse-json-exactly.ts";

/** Texts after which V8 reads other names in those of the next test. */
const earlier = ['{"first":0,"\\\\":0}', '{"first":0,"na\\\\u0":0}', '{"first":[{"second":"","x\\\\":[]}]}'];

test.each([
  ['{"first":0,"\\n":0}', ["first", "\n"]],
  ['{ "first" : 0 , "\\u0061" : 0 }', ["first", "a"]],
  ['{"first":0,"na\\u00efve":0}', ["first", "naïve"]],
  ['{"first":0,"\\\\":0}', ["first", "\\"]],
])("the names in %s do not depend on earlier texts", (text, names) => {
  for (const one of earlier) JSON.parse(one);

  expect(Object.keys(parseJson(text) as object)).toEqual(names);
});

test("nested names do not depend on earlier texts", () => {
  for (const one of earlier) JSON.parse(one);

  expect(parseJson('{"first":[{"second":"","x\\"":[]}]}')).toEqual({ first: [{ second: "", 'x"': [] }] });
});

test.each(['{"a\\n":1,"a\\n":2}', '{"__proto__":{"\\"":[]}}'])("%s is parsed as by JSON.parse", (text) =>
  expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(JSON.parse(text))),
);

test("a malformed text is refused", () => {
  for (const text of ['{"\\n":}', "{", ""]) expect(() => parseJson(text)).toThrow();
});

test("every escape in a name is noticed", () => {
  const plain = fc.stringMatching(/^([ !#-[\]-~é]){0,4}$/u);
  const escaped = fc.constantFrom('\\"', "\\\\", "\\/", "\\n", "\\u0061", "\\u005c");
  const blank = fc.stringMatching(/^[ \t\n\r]{0,2}$/);
  const name = fc
    .tuple(fc.array(fc.oneof(plain, escaped), { maxLength: 4 }), escaped, plain)
    .map((parts) => parts.flat());
  fc.assert(
    fc.property(name, blank, blank, fc.oneof(plain, escaped), (parts, before, after, value) => {
      expect(mayHaveEscapedName(`{"a":"${value}","${parts.join("")}"${before}:${after}"${value}"}`)).toBe(true);
    }),
    randomRuns(500),
  );
});

test.each(['{"a":"b\\n"}', '{"a":"\\\\","b":"\\u0061"}', '["\\""]'])("no name of %s has an escape", (text) => {
  expect(mayHaveEscapedName(text)).toBe(false);
});

test.each([
  '{"a":9007199254740993}',
  '{ "a" : [ 1 , -9007199254740993 ] }',
  '[{"a":"b"},{"b":1e999}]',
  "-1E-400",
  '{"\\u0061":0.1234567890123456789}',
])("the numbers in %s keep their digits", (text) => {
  expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(parseJson(text.replaceAll(" ", ""))));
  expect(JSON.stringify(parseJson(text))).toContain(/[-0-9.eE]{5,}/.exec(text)?.[0]);
});

test("only the numbers of one part are exact, if that is all that is asked for", () => {
  const text = '{"a":9007199254740993,"b":{"c":"1"}}';
  const numbersOf = (name: string) => ({ numbersOf: (value: unknown) => Object(value)[name] });
  expect(parseJson(text, numbersOf("b"))).toEqual({ a: 2 ** 53, b: { c: "1" } });
  expect(parseJson(text, numbersOf("a"))).toEqual({ a: new ExactNumber("9007199254740993"), b: { c: "1" } });
});

test("every number that a double would change is noticed, wherever it stands", () => {
  const number = fc.oneof(
    fc
      .tuple(fc.bigInt(-(10n ** 20n), 10n ** 20n), fc.constantFrom("", ".5", ".000000000001"))
      .map((parts) => parts.join("")),
    fc.tuple(fc.integer(), fc.constantFrom("e5", "E-400", "e+400", ".25e7")).map((parts) => parts.join("")),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  );
  const blank = fc.stringMatching(/^[ \t\n\r]{0,2}$/);
  const around = fc.constantFrom(["", ""], ['{"a":', "}"], ["[", "]"], ['["1",', ',""]']);
  fc.assert(
    fc.property(number, blank, blank, around, (written, before, after, [start, end]) => {
      const text = `${start}${before}${written}${after}${end}`;
      expect(parseJson(text)).toStrictEqual(parseJsonSlowly(text));
    }),
    randomRuns(500),
  );
});
