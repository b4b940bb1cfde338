import fc from "fast-check";
import { expect, test } from "vitest";
import { mayHaveEscapedName, parseJson } from "./parse-json.ts";

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

test.each([
  '{"a\\n":1,"a\\n":2}',
  '{"\\u0061":0.1234567890123456789}',
  '{"\\u0061":1e999}',
  '{"__proto__":{"\\"":[]}}',
])("%s is parsed as by JSON.parse", (text) =>
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
    { numRuns: 1_000 },
  );
});

test.each(['{"a":"b\\n"}', '{"a":"\\\\","b":"\\u0061"}', '["\\""]'])("no name of %s has an escape", (text) => {
  expect(mayHaveEscapedName(text)).toBe(false);
});
