import { type Check, check } from "../check.ts";
import { accepted, invalid, invalidAt, refused, warned } from "../expectations.ts";
import { bookingForm, bookingJson, byteOrderMark, create, createWith, forEach, formType } from "../payloads.ts";
import type { Request } from "../request.ts";

const bodyLimitBytes = 65_536;
/** Far more than the 8 KiB that a URL and headers may have together, and more than one packet. */
const tooLongHeaderCharacters = 300_000;
const noReference = invalid(["consumerTripPartnerExternalReference"]);

const refusedTypes = [
  "text/html",
  "application/xml",
  "multipart/form-data; boundary=x",
  "json",
  "application/json, application/json",
  "application/json; charset=koi8-r",
  'application/json; charset="k\\oi8-\\r"',
  "application/json; charset=utf-8; charset=utf-16",
  "application/json; charset",
  "application/json; charset = utf-8",
  'application/json; charset="utf-8',
  "application/json; profile=https://example.com",
];

const acceptedTypes = [
  "application/json; charset=utf-8",
  'application/json;charset="UTF-8"',
  "Application/JSON; Charset=UTF-8;",
  "Application/JSON; profile=x",
  "application/json;\tboundary=x ; charset=utf-8",
  'application/json; profile="a;charset=latin1"',
  'application/json; profile="a;b=\\"c\\", d"; Charset="ut\\f-8"; ;',
  ...["text/json", "application/problem+json", "application/vnd.acme+JSON; charset=utf-8"],
];

const undeclaredJson = { code: "wrong-content-type", propertyPath: [] };

const charsets = [
  { charset: "iso-8859-1", encode: (text: string) => Buffer.from(text, "latin1") },
  { charset: "windows-1252", encode: (text: string) => Buffer.from(text, "latin1") },
  { charset: "utf-16", encode: (text: string) => Buffer.from(`${byteOrderMark}${text}`, "utf16le") },
  { charset: "utf-16be", encode: (text: string) => Buffer.from(text, "utf16le").swap16() },
];

const conflictingTypes = [
  ["application/json", formType],
  ["application/json", "text/plain"],
  ["text/plain", "application/json"],
  ["application/json", "application/json; charset=utf-8"],
  ["application/json", "application/json", ""],
];

export const bodyChecks: readonly Check[] = [
  ...sizes(),
  ...types(),
  ...encodings(),
  ...absentBodies(),
  ...framing(),
  check("answers/no-values", "No answer repeats a value of the payload.", {
    request: (reference) => ({ body: bookingJson(reference, { agentEmail: "canary-8d1f6", consumerPhone: [] }) }),
    expect: (answer, receiver) => [
      ...invalidAt("agentEmail")(answer, receiver),
      ...(`${answer.head}${answer.body}`.includes("canary-8d1f6") ? ["the answer contains the value"] : []),
    ],
  }),
];

function sizes(): Check[] {
  const largest = (reference: string) => bookingJson(reference).padEnd(bodyLimitBytes);
  const tooLarge = (reference: string) => bookingJson(reference).padEnd(bodyLimitBytes + 1);
  const tooLargeForm = (reference: string) => `${bookingForm(reference)}&note=`.padEnd(bodyLimitBytes + 1, "x");
  const bodyTooLarge = refused(413, "body-too-large");
  const headersTooLarge = refused(431, "headers-too-large");
  return [
    check(
      "sizes/largest-body",
      "A body of 65,536 bytes is accepted.",
      { label: "with its length", request: createWith(largest), expect: accepted },
      { label: "chunked", request: createWith(largest, { framing: "chunked" }), expect: accepted },
    ),
    check(
      "sizes/body",
      "A body of more than 65,536 bytes gets 413.",
      { label: "JSON", request: createWith(tooLarge), expect: bodyTooLarge },
      { label: "form", request: createWith(tooLargeForm, { type: formType }), expect: bodyTooLarge },
    ),
    check("sizes/announced-body", "413 is answered before the body arrives, if its length is announced.", {
      request: create({ body: "", framing: { announced: bodyLimitBytes + 1 } }),
      expect: bodyTooLarge,
    }),
    check("sizes/chunked-body", "A chunked body of more than 65,536 bytes gets 413.", {
      request: createWith(tooLarge, { framing: "chunked" }),
      expect: bodyTooLarge,
    }),
    check("sizes/header", "A header that is too long gets 431.", {
      request: create({ headers: [`X-Long: ${"x".repeat(tooLongHeaderCharacters)}`] }),
      expect: headersTooLarge,
    }),
    check("sizes/url", "A URL that is too long gets 431.", {
      request: create({ path: `/booking-event/create/${"x".repeat(tooLongHeaderCharacters)}` }),
      expect: headersTooLarge,
    }),
    check("sizes/slow-body", "A body that does not arrive in time gets 408.", {
      request: create({ body: "{", framing: { announced: 100 } }),
      expect: refused(408, "too-slow"),
    }),
  ];
}

function types(): Check[] {
  const wrongType = refused(415, "unsupported-type");
  return [
    check(
      "types/refused",
      "A body of another type or charset gets 415. So does a malformed Content-Type.",
      ...forEach(refusedTypes, (type) => create({ type }), wrongType),
      { label: "none", request: create({ type: null, body: "a=1" }), expect: wrongType },
      { label: "text/plain", request: create({ type: "text/plain", body: "[]" }), expect: wrongType },
      { label: "chunked", request: create({ type: "text/html", framing: "chunked" }), expect: wrongType },
    ),
    check(
      "types/undeclared-json",
      "A JSON object is accepted without a Content-Type, as text/plain and as a form, with the warning wrong-content-type.",
      ...forEach(
        [null, "text/plain", "text/plain;charset=UTF-8", formType],
        (type) => create({ type }),
        warned(undeclaredJson),
      ),
    ),
    check(
      "types/undeclared-malformed",
      "A body that begins with { and is no JSON gets 400, and the message says which Content-Type to set.",
      ...forEach(
        [null, "text/plain", formType],
        (type) => create({ type, body: "{a=1" }),
        refused(400, "wrong-content-type", { says: /application\/json/ }),
      ),
    ),
    check(
      "types/charsets",
      "Bodies in iso-8859-1, windows-1252 and UTF-16 are accepted if they are declared.",
      ...charsets.map(({ charset, encode }) => ({
        label: charset,
        request: createWith((reference: string) => encode(bookingJson(reference, { consumerGivenName: "Zoë" })), {
          type: `application/json; charset=${charset}`,
        }),
        expect: accepted,
      })),
    ),
    check(
      "types/parameters",
      "Parameters of a Content-Type are read as in RFC 9110: quoted values are legal, unknown ones are ignored.",
      ...forEach(acceptedTypes, (type) => create({ type }), accepted),
    ),
    check(
      "types/two",
      "Two different Content-Type headers get 400; the same one twice is accepted.",
      ...forEach(conflictingTypes, withTypes, refused(400, "two-content-types")),
      { label: "the same", request: withTypes(["application/json", "application/json"]), expect: accepted },
    ),
  ];
}

function encodings(): Check[] {
  return [
    check(
      "types/encoding",
      "Any Content-Encoding but identity, and the mistaken utf-8, gets 415.",
      ...forEach(
        ["gzip", "br", "identity, gzip", "nonsense"],
        (coding) => create(encoded(coding)),
        refused(415, "unsupported-encoding"),
      ),
      ...forEach(["identity", "Identity", "utf-8"], (coding) => create(encoded(coding)), accepted),
    ),
  ];
}

function withTypes(types: readonly string[]) {
  return create({ type: null, headers: types.map((type) => `Content-Type: ${type}`) });
}

function encoded(coding: string): Request {
  return { headers: [`Content-Encoding: ${coding}`] };
}

function absentBodies(): Check[] {
  const twoTypes = ["Content-Type: text/plain", "Content-Type: text/html"];
  const absent: Record<string, Request> = {
    "no length": {},
    "length 0": { body: "", type: null },
    "empty chunked": { body: "", type: null, framing: "chunked" },
    "text/plain": { body: "", type: "text/plain" },
    "malformed type": { body: "", type: ";;;", framing: "chunked" },
    "no type and a byte order mark": { body: byteOrderMark, type: null },
    "two types": { headers: twoTypes },
    "two types and length 0": { body: "", type: null, headers: twoTypes },
    "two types, empty chunked": { body: "", type: null, headers: twoTypes, framing: "chunked" },
    "empty form": { body: "", type: formType },
    "form of ampersands": { body: "&&", type: formType },
  };
  return [
    check(
      "bodies/absent",
      "An absent body counts as the empty object and gets 422, whatever its Content-Type headers say.",
      ...Object.entries(absent).map(([label, request]) => ({ label, request: () => request, expect: noReference })),
    ),
    check("bodies/chunked", "A chunked body is accepted.", {
      request: create({ framing: "chunked" }),
      expect: accepted,
    }),
  ];
}

function framing(): Check[] {
  const notHttp = refused(400, "malformed-http");
  return [
    check("http/two-hosts", "A second Host header gets 400.", {
      request: create({ hosts: 2 }),
      expect: refused(400, "repeated-host"),
    }),
    check("http/no-host", "A request without a Host header gets 400.", {
      request: create({ hosts: 0 }),
      expect: notHttp,
    }),
    check(
      "http/malformed",
      "A request that is not valid HTTP/1.1 gets 400.",
      { label: "unknown method", request: create({ method: "BREW" }), expect: notHttp },
      { label: "name of a header with a space", request: create({ headers: ["Bad Header: 1"] }), expect: notHttp },
      { label: "two lengths", request: create({ headers: ["Content-Length: 1"] }), expect: notHttp },
      { label: "secret that is not ASCII", request: create({ secret: "gehe\u00efm" }), expect: notHttp },
    ),
    check("http/conflicting-framing", "Content-Length beside Transfer-Encoding gets 400.", {
      request: create({ headers: ["Transfer-Encoding: chunked"] }),
      expect: notHttp,
    }),
  ];
}
