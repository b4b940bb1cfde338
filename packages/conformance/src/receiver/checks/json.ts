import { type Check, check } from "../check.ts";
import { accepted, type Expectation, invalid, refused, warned } from "../expectations.ts";
import { bookingJson, byteOrderMark, create, createWith, forEach, rawJson } from "../payloads.ts";

const depth = 20_000;

const acceptedNumbers = [
  ...["10.50", "1.0", "-0", "0.1", "1.0e2", "9007199254740991", "1.7976931348623157e-300", "5e-324"],
  ...["0.1234567890123456789", "1e-400", "1e400", "1e21", "9007199254740993", "-9007199254740992.5"],
  ...["1e999", "-1e-999", "9".repeat(1_000)],
];

const longNumbers = ["1e1000", "1e-1000", "-1e99999999999999999999", "9".repeat(1_001)];

/** What a body that should be JSON may be. The examples show which values fields may have. */
export const jsonChecks: readonly Check[] = [
  bodies("malformed", "Malformed JSON gets 400.", ["{", '{"a":1,}', "{'a':1}", '{"a":01}', "{} {}"], malformed()),
  bodies(
    "position",
    "The message of malformed JSON names line and column, both from 1, columns in UTF-16 code units.",
    ['{\n"a":"😀" x}'],
    malformed(2, 10),
  ),
  check(
    "json/blank",
    "A body of blanks is malformed at its end.",
    { label: '"  "', request: create({ body: "  " }), expect: malformed(1, 3) },
    { label: '"\\n  "', request: create({ body: "\n  " }), expect: malformed(2, 3) },
  ),
  bodies(
    "not-an-object",
    "An array, a scalar or null gets 400.",
    ["[]", '"a"', "1", "true", "null"],
    refused(400, "not-an-object"),
  ),
  members(
    "duplicate-keys",
    "A key twice in one JSON object gets 400, at any level and however it is written.",
    ['"a":1,"a":1', '"a":{"b":1,"b":2}', '"a":[{"b":1,"\\u0062":2}]', '"__proto__":1,"__proto__":1'],
    refused(400, "repeated-json-key"),
  ),
  check(
    "json/duplicate-before-nesting",
    "A duplicate key gets 400 also in a payload that is nested too deep.",
    { label: "outside", request: nested("", ',"a":1'), expect: refused(400, "repeated-json-key") },
    { label: "inside", request: nested('{"b":1,"\\u0062":1}'), expect: refused(400, "repeated-json-key") },
  ),
  check("json/utf-8", "Bytes that are not UTF-8 get 400.", {
    request: createWith((reference) => Buffer.from(bookingJson(reference, { a: "ÿ" }), "latin1")),
    expect: refused(400, "invalid-utf8"),
  }),
  check(
    "json/byte-order-mark",
    "One byte order mark at the start is ignored; a second one is malformed.",
    { label: "one", request: createWith((it) => byteOrderMark + bookingJson(it)), expect: accepted },
    { label: "two", request: createWith((it) => byteOrderMark.repeat(2) + bookingJson(it)), expect: malformed(1, 1) },
    {
      label: "alone",
      request: create({ body: byteOrderMark }),
      expect: invalid(["consumerTripPartnerExternalReference"]),
    },
  ),
  check(
    "json/unstorable",
    "U+0000 and halves of surrogate pairs are replaced, with the warning unstorable-text.",
    {
      label: "in a text",
      request: createWith((it) => rawJson(it, '"consumerGivenName":"Robin \\ud83d","a":["\\u0000"]')),
      expect: warned(unstorable("consumerGivenName"), unstorable("a", "0")),
    },
    {
      label: "in a name",
      request: createWith((it) => rawJson(it, '"note\\udc00":1')),
      expect: warned(unstorable("note\ufffd")),
    },
    {
      label: "in a name that then equals another",
      request: createWith((it) => rawJson(it, '"a\\u0000":1,"a\\ufffd":1')),
      expect: refused(400, "equal-names"),
    },
    {
      label: "in the reference",
      request: createWith((it) => `{"consumerTripPartnerExternalReference":"${it}\\u0000"}`),
      expect: invalid(["consumerTripPartnerExternalReference"]),
    },
  ),
  members(
    "numbers",
    "Numbers are accepted however they are written, also if no double holds them.",
    acceptedNumbers.map(asPrice),
    accepted,
  ),
  members(
    "long-numbers",
    "A number of more than 1,000 digits, written without an exponent, gets 422.",
    longNumbers.map(asPrice),
    invalid(["price", "amount"]),
  ),
  members(
    "digits",
    "Numbers of more than 20,000 digits together get 422.",
    [`"a":[${Array(20).fill("1e999").join()},1]`],
    invalid([]),
  ),
];

function bodies(name: string, demand: string, each: readonly string[], expect: Expectation): Check {
  return check(`json/${name}`, demand, ...forEach(each, (body) => create({ body }), expect));
}

/** Of a booking with each of these members. */
function members(name: string, demand: string, each: readonly string[], expect: Expectation): Check {
  const request = (member: string) => createWith((reference) => rawJson(reference, member));
  return check(`json/${name}`, demand, ...forEach(each, request, expect));
}

function nested(inside: string, after = "") {
  return createWith((reference) => rawJson(reference, `"a":${"[".repeat(depth)}${inside}${"]".repeat(depth)}${after}`));
}

/** @param position of the error, which the message names however it is worded */
function malformed(...position: [line: number, column: number] | []): Expectation {
  if (position.length === 0) return refused(400, "malformed-json");
  const [line, column] = position;
  return refused(400, "malformed-json", { says: new RegExp(`\\b${line}\\b.*\\b${column}\\b`) });
}

function unstorable(...propertyPath: string[]) {
  return { code: "unstorable-text", propertyPath };
}

function asPrice(number: string): string {
  return `"price":{"amount":${number}}`;
}
