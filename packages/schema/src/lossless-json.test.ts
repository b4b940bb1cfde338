import { describe, expect, test } from "vitest";
import { isLossless } from "./lossless-json.ts";

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
    ['{"a":[1234567890123456]}', false],
    ['{"a":[0.12345678901234]}', false],
    ['{"a":[1e5]}', false],
    ['{"a":{"b":1E5}}', false],
    ['{"a":["no number is like these letters, is it?",1,12]}', true],
    // If the object has any number, digits inside a string count as a possible number.
    ['{"a":["1e5 1234567890123456"]}', true],
    ['{"a":["1e5",1]}', false],
  ])("%s: %s", (text, isKept) => expect(check(text)).toBe(isKept));
});
