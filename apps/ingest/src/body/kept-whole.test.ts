import { describe, expect, test } from "vitest";
import { isKeptWhole } from "./kept-whole.ts";

/** That it is right whenever it says yes is tested with what it is for: see decode-body.test.ts. */

const judge = (text: string) => isKeptWhole(text, JSON.parse(text));

describe("what leaves no room for another field is kept whole, though an escape hides how many strings there are", () => {
  test.each([
    ['{"a":"\\""}', true],
    ['{"a":"\\"","b":null}', true],
    ['{"a":"\\"","bcd":"efg"}', true],
    // A further `"":0,` takes five characters. An escape takes one itself.
    ['{"a":"\\""   }', true],
    ['{"a":"\\""    }', false],
    ['{"a":"\\"","b":null   }', true],
    ['{"a":"\\"","b":null    }', false],
    ['{"":0,"a":"\\""}', false],
    ['{"a":"\\"","b":true}', false],
  ])("%s: %s", (text, isKept) => expect(judge(text)).toBe(isKept));
});

describe("what has each string that its text has, and no number that may have been rounded, is kept whole", () => {
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
    // The number may as well be a part of a string, where there is any number.
    ['{"a":["1e5 1234567890123456"]}', true],
    ['{"a":["1e5",1]}', false],
  ])("%s: %s", (text, isKept) => expect(judge(text)).toBe(isKept));
});
