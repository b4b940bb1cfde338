import { type Check, check } from "../check.ts";
import { accepted, type Expectation, invalid, invalidAt, refused } from "../expectations.ts";
import { bookingFor, bookingForm, bookingJson, create, createWith, forEach, formType, rawJson } from "../payloads.ts";
import type { Request } from "../request.ts";

const bodyLimitBytes = 65_536;
/** Far more than the 8 KiB that a URL and headers may have together. */
const tooLongHeaderCharacters = 40_000;
const byteOrderMark = "\ufeff";
const noReference = invalid(["consumerTripPartnerExternalReference"]);

export const bodyChecks: readonly Check[] = [
  ...sizes(),
  ...types(),
  ...json(),
  ...forms(),
  ...absentBodies(),
  ...framing(),
  check("ours", "answers/no-values", "No answer repeats a value of the payload.", {
    request: (reference) => ({ body: bookingJson(reference, { agentEmail: "canary-8d1f6", consumerPhone: [] }) }),
    expect: (answer, receiver) => [
      ...invalidAt("agentEmail")(answer, receiver),
      ...(`${answer.head}${answer.body}`.includes("canary-8d1f6") ? ["the answer contains the value"] : []),
    ],
  }),
];

function sizes(): Check[] {
  const tooLarge = (reference: string) => bookingJson(reference).padEnd(bodyLimitBytes + 1);
  return [
    check("ours", "sizes/largest-body", "A body of 65,536 bytes is accepted.", {
      request: createWith((reference) => bookingJson(reference).padEnd(bodyLimitBytes)),
      expect: accepted,
    }),
    check("ours", "sizes/body", "A body of more than 65,536 bytes gets 413.", {
      request: createWith(tooLarge),
      expect: refused(413),
    }),
    check("ours", "sizes/announced-body", "413 is answered before the body arrives, if its length is announced.", {
      request: create({ body: "", framing: { announced: bodyLimitBytes + 1 } }),
      expect: refused(413),
    }),
    check("ours", "sizes/chunked-body", "A chunked body of more than 65,536 bytes gets 413.", {
      request: createWith(tooLarge, { framing: "chunked" }),
      expect: refused(413),
    }),
    check("ours", "sizes/header", "A header that is too long gets 431.", {
      request: create({ headers: [`X-Long: ${"x".repeat(tooLongHeaderCharacters)}`] }),
      expect: refused(431),
    }),
    check("ours", "sizes/url", "A URL that is too long gets 431.", {
      request: create({ path: `/booking-event/create/${"x".repeat(tooLongHeaderCharacters)}` }),
      expect: refused(431),
    }),
    check("ours", "sizes/slow-body", "A body that does not arrive in time gets 408.", {
      request: create({ body: "{", framing: { announced: 100 } }),
      expect: refused(408),
    }),
  ];
}

function types(): Check[] {
  return [
    check(
      "ours",
      "types/refused",
      "A body of another type, or of a charset other than UTF-8, gets 415. So does a malformed Content-Type.",
      ...forEach(
        ["text/plain", "application/xml", "application/json; charset=latin1", "application/json; charset", "json"],
        (type) => create({ type }),
        refused(415),
      ),
      { label: "none", request: create({ type: null }), expect: refused(415) },
    ),
    check(
      "ours",
      "types/parameters",
      "Parameters of a Content-Type are read as in RFC 9110: quoted values are legal, unknown ones are ignored.",
      ...forEach(
        [
          "application/json; charset=utf-8",
          'application/json;charset="UTF-8"',
          "Application/JSON; profile=x",
          'application/json; profile="a;charset=latin1"',
        ],
        (type) => create({ type }),
        accepted,
      ),
    ),
    check(
      "ours",
      "types/two",
      "Two different Content-Type headers get 400; the same one twice is accepted.",
      { label: "different", request: create({ headers: [`Content-Type: ${formType}`] }), expect: refused(400) },
      { label: "the same", request: create({ headers: ["Content-Type: application/json"] }), expect: accepted },
    ),
    check(
      "ours",
      "types/encoding",
      "Any Content-Encoding but identity gets 415.",
      ...forEach(["gzip", "br", "identity, gzip"], (coding) => create(encoded(coding)), refused(415)),
      { label: "identity", request: create(encoded("identity")), expect: accepted },
    ),
  ];
}

function encoded(coding: string): Request {
  return { headers: [`Content-Encoding: ${coding}`] };
}

/** Names the position of an error, however it is worded. */
function position(line: number, column: number): RegExp {
  return new RegExp(`\\b${line}\\b.*\\b${column}\\b`);
}

function json(): Check[] {
  const jsonCheck = (name: string, demand: string, bodies: readonly string[], expect: Expectation) =>
    check("ours", `json/${name}`, demand, ...forEach(bodies, (body) => create({ body }), expect));
  const membersCheck = (name: string, demand: string, members: readonly string[], expect: Expectation) =>
    check(
      "ours",
      `json/${name}`,
      demand,
      ...forEach(members, (each) => createWith((reference) => rawJson(reference, each)), expect),
    );
  return [
    jsonCheck("malformed", "Malformed JSON gets 400.", ["{", '{"a":1,}', "{'a':1}", '{"a":01}', "{} {}"], refused(400)),
    jsonCheck(
      "position",
      "The message of malformed JSON names line and column, both from 1, columns in UTF-16 code units.",
      ['{\n"a":"😀" x}'],
      refused(400, { says: position(2, 10) }),
    ),
    jsonCheck("blank", "A body of blanks is malformed at its end.", ["  "], refused(400, { says: position(1, 3) })),
    jsonCheck(
      "not-an-object",
      "An array, a scalar or null gets 400.",
      ["[]", '"a"', "1", "true", "null"],
      refused(400),
    ),
    membersCheck(
      "duplicate-keys",
      "A key twice in one JSON object gets 400, at any level and however it is written.",
      ['"a":1,"a":1', '"a":{"b":1,"b":2}', '"a":[{"b":1,"\\u0062":2}]', '"__proto__":1,"__proto__":1'],
      refused(400),
    ),
    membersCheck(
      "duplicate-before-nesting",
      "A duplicate key gets 400 also in a payload that is nested too deep.",
      [`"a":${"[".repeat(20)}${"]".repeat(20)},"a":1`],
      refused(400),
    ),
    check("ours", "json/utf-8", "Bytes that are not UTF-8 get 400.", {
      request: createWith((reference) => Buffer.from(bookingJson(reference, { a: "ÿ" }), "latin1")),
      expect: refused(400),
    }),
    check(
      "ours",
      "json/byte-order-mark",
      "One byte order mark at the start is ignored; a second one is malformed.",
      { label: "one", request: createWith((it) => byteOrderMark + bookingJson(it)), expect: accepted },
      { label: "two", request: createWith((it) => byteOrderMark.repeat(2) + bookingJson(it)), expect: refused(400) },
      { label: "alone", request: create({ body: byteOrderMark }), expect: noReference },
    ),
    membersCheck(
      "inexact-numbers",
      "A number that a double cannot hold gets 422, and so does an integer beyond 2^53 - 1.",
      ["0.1234567890123456789", "1e-400", "1e400", "1e21", "9007199254740992", "-9007199254740993"].map(asMember),
      invalid(["n"]),
    ),
    membersCheck(
      "exact-numbers",
      "Numbers that a double holds are accepted however they are written.",
      ["10.50", "1.0", "-0", "0.1", "1.0e2", "9007199254740991", "1.7976931348623157e-300"].map(asMember),
      accepted,
    ),
  ];
}

function asMember(number: string): string {
  return `"n":${number}`;
}

function forms(): Check[] {
  const formCheck = (name: string, demand: string, additions: readonly string[], expect: Expectation) =>
    check(
      "ours",
      `forms/${name}`,
      demand,
      ...forEach(additions, (each) => createWith((it) => `${bookingForm(it)}${each}`, { type: formType }), expect),
    );
  const sentAsForm = { type: formType };
  return [
    formCheck("duplicate-fields", "A form field twice gets 400.", ["&a=1&a=1", "&a=1&%61=2"], refused(400)),
    formCheck("brackets", "A form field with brackets gets 400.", ["&a[b]=1", "&a[]=1", "&a%5B0%5D=1"], refused(400)),
    formCheck("malformed", "Invalid percent-encoding gets 400.", ["&a=%", "&a=%zz", "&a=%E0%A4%A"], refused(400)),
    formCheck("utf-8", "A form that is not UTF-8 when it is decoded gets 400.", ["&a=%FF"], refused(400)),
    check(
      "ours",
      "forms/json",
      "JSON sent as a form gets 400, and the message says which Content-Type to set.",
      { label: "object", request: create(sentAsForm), expect: refused(400, { says: /application\/json/ }) },
      {
        label: "array",
        request: create({ ...sentAsForm, body: "[]" }),
        expect: refused(400, { says: /application\/json/ }),
      },
    ),
    check(
      "ours",
      "forms/byte-order-mark",
      "One byte order mark at the start is ignored; a second one is malformed.",
      { label: "one", request: createWith((it) => byteOrderMark + bookingForm(it), sentAsForm), expect: accepted },
      {
        label: "two",
        request: createWith((it) => byteOrderMark.repeat(2) + bookingForm(it), sentAsForm),
        expect: refused(400),
      },
    ),
    check(
      "ours",
      "forms/values",
      "A form counts as one value and one more for each field; 2,000 are accepted, 2,001 get 422.",
      { label: "2,000", request: createWith((it) => formOf(1_999, it), sentAsForm), expect: accepted },
      { label: "2,001", request: createWith((it) => formOf(2_000, it), sentAsForm), expect: invalid([]) },
    ),
    check(
      "ours",
      "forms/empty-value",
      "An empty value of a listed form field gets 422.",
      ...forEach(
        ["consumerGivenName"],
        (name) => createWith((it) => bookingForm(it, { [name]: "" }), sentAsForm),
        invalid(["consumerGivenName"]),
      ),
    ),
  ];
}

function formOf(fields: number, reference: string): string {
  const { length: listed } = Object.keys(bookingFor(reference));
  const others = Array.from({ length: fields - listed }, (_, index) => `&f${index}=1`);
  return `${bookingForm(reference)}${others.join("")}`;
}

function absentBodies(): Check[] {
  return [
    check(
      "ours",
      "bodies/absent",
      "An absent body counts as the empty object and gets 422, whatever its Content-Type headers say.",
      { label: "no length", request: () => ({}), expect: noReference },
      { label: "length 0", request: () => ({ body: "", type: null }), expect: noReference },
      { label: "empty chunked", request: () => ({ body: "", type: null, framing: "chunked" }), expect: noReference },
      { label: "text/plain", request: () => ({ body: "", type: "text/plain" }), expect: noReference },
      {
        label: "two types",
        request: () => ({ headers: ["Content-Type: text/plain", "Content-Type: text/html"] }),
        expect: noReference,
      },
    ),
    check("ours", "bodies/chunked", "A chunked body is accepted.", {
      request: create({ framing: "chunked" }),
      expect: accepted,
    }),
  ];
}

function framing(): Check[] {
  return [
    check("ours", "http/two-hosts", "A second Host header gets 400.", {
      request: create({ hosts: 2 }),
      expect: refused(400),
    }),
    check("ours", "http/conflicting-framing", "Content-Length beside Transfer-Encoding gets 400.", {
      request: create({ headers: ["Transfer-Encoding: chunked"] }),
      expect: refused(400),
    }),
  ];
}
