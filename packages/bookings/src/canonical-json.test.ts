import { bookingFields, parseJson } from "@booking-events/schema";
import canonicalize from "canonicalize";
import { expect, test } from "vitest";
import { toCanonicalJson } from "./canonical-json.ts";

const values = {
  "listed fields":
    '{"consumerTripPartnerExternalReference":"N1","consumerPhone":"+44 \\"1\\"","agentEmail":"a@b.example"}',
  "listed fields of any type": '{"consumerPhone":1.0e2,"consumerLanguage":null,"agentEmail":true}',
  "listed fields with members": '{"consumerPhone":{"b":"1","a":"2"},"agentEmail":["2","1"]}',
  "listed and unlisted fields": '{"consumerPhone":"1","consumerAge":"2","agentEmail":"3","10":"4","9":"5"}',
  "listed fields and __proto__": '{"consumerPhone":"1","__proto__":"2","agentEmail":"3"}',
  "a backslash before ud": '{"consumerPhone":"\\\\ud800"}',
  "names in any order": '{"b":"1","a":"2","A":"3","_":"4"}',
  "names outside of ASCII, in the order of UTF-16":
    '{"\\ud83d\\ude00":"1","\\ufb33":"2","\\u20ac":"3","\\u00f6":"4","\\r":"5"}',
  "names that are whole numbers": '{"b":"1","10":"2","9":"3","!":"4"}',
  "texts with escapes": '{"a":"\\u0001\\"\\\\\\/\\n\\u007f\\u2028","\\"":"<>"}',
  "numbers, flags and null": '{"d":1.0e2,"c":-0,"b":1e21,"a":0.000001,"f":true,"e":false,"g":null}',
  "members with members": '{"b":{"d":["2",{"f":1,"e":2}],"c":"1"},"a":[]}',
  "no members": "{}",
  "no items": "[]",
  "a text": '"a"',
};

test.each(Object.entries(values))("what RFC 8785 says is written for %s", (_, text) => {
  const value: unknown = JSON.parse(text);
  expect(toCanonicalJson(value)).toBe(canonicalize(value));
});

test("every listed field is written in its canonical place, whatever the order", () => {
  const fields = bookingFields.map(({ name }) => [name, `of ${name}`]);
  const value = Object.fromEntries(fields.toReversed());
  expect(toCanonicalJson(value)).toBe(canonicalize(value));
});

test("the order of members and the form of numbers make no difference", () => {
  expect(toCanonicalJson(JSON.parse('{ "b": 1.0e2, "a": "é" }'))).toBe('{"a":"é","b":100}');
});

/** Numbers of the same value in each row, and of another one in each row. */
const numbers = [
  ["100", "1.0e2", "1E+2", "100.00", "1000e-1"],
  ["0", "-0", "0.0", "-0e7"],
  ["9007199254740993", "9007199254740993.0", "900719925474099.3e1"],
  ["9007199254740992", "9007199254740992.0"],
  ["1e400", "10e399", `1${"0".repeat(400)}`],
  ["1e401"],
  ["-1e401"],
  ["1e-400", `0.${"0".repeat(399)}1`],
  ["0.1", "0.10", "1e-1"],
  ["0.1000000000000000055511151231257827"],
];

test("numbers are compared by their exact decimal values, however they are written", () => {
  const written = numbers.map((row) => {
    return new Set(row.flatMap((number) => [`{"a":[${number}]}`, `{"a":[ ${number} ]}`].map(canonicalOf)));
  });
  expect(written.map(({ size }) => size)).toEqual(numbers.map(() => 1));
  expect(new Set(written.flatMap((row) => [...row])).size).toBe(numbers.length);
});

test("a short number stays short, so that no payload is costly to compare", () => {
  const row = Array(2_000).fill("1e1000").join();
  expect(canonicalOf(`{"a":[${row}]}`)).toBe(`{"a":[${row.replaceAll("e", "e+")}]}`);
});

function canonicalOf(text: string): string {
  return toCanonicalJson(parseJson(text));
}
