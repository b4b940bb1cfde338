import { describe, expect, test } from "vitest";
import { readEvent, type SenderRequest } from "./read-event.ts";

const secret = "kit-secret/canary";
const inPath = `/booking-event/create/${encodeURIComponent(secret)}`;
const booking = { consumerTripPartnerExternalReference: "TRIP-1" };
const json = { "content-type": "application/json" };

function read({
  body = JSON.stringify(booking),
  ...request
}: Partial<Omit<SenderRequest, "body">> & { body?: string }) {
  return readEvent({ method: "POST", path: inPath, headers: json, ...request, body: Buffer.from(body) }, secret);
}

/** The code of the refusal; undefined if there is an event. */
function codeOf(request: Parameters<typeof read>[0]): string | undefined {
  const event = read(request);
  return "answer" in event ? event.answer.code : undefined;
}

describe("the secret", () => {
  const bearer = { ...json, authorization: `Bearer ${secret}` };

  test.each([
    ["in the path", inPath, json],
    ["in the path, before a slash", `${inPath}/`, json],
    ["in the header", "/booking-event/create", bearer],
    ["in the header, with a slash after the path", "/booking-event/create/", bearer],
  ])("%s is read", (_, path, headers) => {
    expect(codeOf({ path, headers })).toBeUndefined();
  });

  test.each([
    ["another one", "/booking-event/create/other", json, "invalid-secret"],
    ["none", "/booking-event/create", json, "invalid-secret"],
    ["another one in the header", "/booking-event/create", { authorization: "Bearer other" }, "invalid-secret"],
    ["two", inPath, bearer, "invalid-secret"],
    ["bytes that are no text", "/booking-event/create/%E0%A4", json, "invalid-secret"],
    ["one for another operation", "/booking-event/cancel", bearer, "no-such-path"],
  ])("%s is refused", (_, path, headers, code) => {
    expect(codeOf({ path, headers })).toBe(code);
  });
});

test.each([
  ["malformed JSON", '{"a":}', json, "malformed-json"],
  ["a duplicate key", '{"a":1,"a":2}', json, "repeated-json-key"],
  ["a list", "[]", json, "not-an-object"],
  ["a duplicate key without a type", '{"a":1,"a":2}', {}, "repeated-json-key"],
  ["malformed JSON without a type", '{"a":}', {}, "wrong-content-type"],
  ["names that become equal", '{"a\\u0000":1,"a\ufffd":2}', json, "equal-names"],
  [
    "a key that is too long",
    JSON.stringify(booking),
    { ...json, "idempotency-key": "k".repeat(256) },
    "invalid-idempotency-key",
  ],
  ["a key that is not ASCII", JSON.stringify(booking), { ...json, "webhook-id": "ü" }, "invalid-idempotency-key"],
  ["no payload at all", "", json, "invalid-data"],
])("%s is refused for the reason that the service gives", (_, body, headers, code) => {
  expect(codeOf({ body, headers })).toBe(code);
});

test("a key in quotes may have 255 characters inside", () => {
  expect(codeOf({ headers: { ...json, "idempotency-key": `"${"k".repeat(255)}"` } })).toBeUndefined();
});

test("what cannot be stored is replaced, with a warning", () => {
  const event = read({ body: JSON.stringify({ ...booking, consumerGivenName: "A\0da" }) });

  expect(event).toMatchObject({
    content: '{"consumerGivenName":"A\ufffdda","consumerTripPartnerExternalReference":"TRIP-1"}',
    warnings: [{ code: "unstorable-text", propertyPath: ["consumerGivenName"] }],
  });
});
