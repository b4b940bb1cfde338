import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isCompactJson, isLossless } from "./lossless-json.ts";

/** parse-json-object.test.ts tests that every "true" is right, together with its use. */

const check = (text: string) => isLossless(text, JSON.parse(text));

describe("a text with no room for another field is lossless, even if an escape hides the number of strings", () => {
  test.each([
    ['{"a":"\\""}', true],
    ['{"a":"\\"","b":null}', true],
    ['{"a":"\\"","bcd":"efg"}', true],
    // Another `"":0,` takes five characters. An escape takes one more character than its value.
    ['{"a":"\\""   }', true],
    ['{"a":"\\""    }', false],
    ['{"a":"\\"","b":null   }', true],
    ['{"a":"\\"","b":null    }', false],
    ['{"":0,"a":"\\""}', false],
    ['{"a":"\\"","b":true}', false],
  ])("%s: %s", (text, isKept) => expect(check(text)).toBe(isKept));
});

describe("an object with every string of its text, and no possibly rounded number, is lossless", () => {
  test.each([
    [' { "a" : { "b" : [ "c" , { "d" : null , "e" : true } , [ 1 , [ ] ] ] } } ', true],
    ['{"a":[[1],[null],["b"]],"c":false}', true],
    ['{"a":1,"a":1}', false],
    ['{"a":[{"b":1,"b":1}]}', false],
    ['{"a":["\\""]}', false],
    ['{"a":[123456789012345]}', true],
    ['{"a":[1234567890123456]}', true],
    ['{"a":[9007199254740993]}', false],
    ['{"a":[0.12345678901234]}', true],
    ['{"a":[0.123456789012345]}', false],
    ['{"a":[1e5]}', false],
    ['{"a":{"b":1E5}}', false],
    ['{"a":["no number is like these letters, is it?",1,12]}', true],
    // If the object has any number, what looks like one inside a string counts as a possible number.
    ['{"a":["to: 1e5"]}', true],
    ['{"a":["1e5",1]}', true],
    ['{"a":["to: 1e5",1]}', false],
  ])("%s: %s", (text, isKept) => expect(check(text)).toBe(isKept));
});

test("only what JSON.stringify writes for texts and nulls without escapes is compact", () => {
  const character = fc.constantFrom("a", " ", '"', "\\", "é", "\u2028", "\0", "\ud800", "\u007f", "1", "_");
  const text = fc.string({ unit: character, maxLength: 4 });
  const object = fc.dictionary(fc.oneof(text, fc.constant("__proto__")), fc.option(text), { maxKeys: 5 });
  fc.assert(
    fc.property(object, (value) => {
      const json = JSON.stringify(value);
      const spaced = JSON.stringify(value, null, 1);
      expect(isCompactJson(json, JSON.parse(json))).toBe(!json.includes("\\") && json !== "{}");
      expect(isCompactJson(spaced, JSON.parse(spaced))).toBe(false);
      const escaped = json.replace("a", "\\u0061");
      expect(escaped !== json && isCompactJson(escaped, JSON.parse(escaped))).toBe(false);
    }),
  );
  for (const other of ["[]", '{"a":1}', '{"a":{}}', '{"a":"b","a":"b"}', '{"a":"b","a":""}', '{"a":null,"a":"bc"}'])
    expect(isCompactJson(other, JSON.parse(other)), other).toBe(false);
});
