import { expect, test } from "vitest";
import type { Violation } from "../payload/violation.ts";
import type { Warning } from "../warnings/warning.ts";
import type { Answer } from "./answer.ts";
import * as answers from "./answers.ts";
import * as lookupAnswers from "./lookup-answers.ts";

// Partners' programs depend on these texts and headers. Tests of the services take them from the catalogue, so only this
// table notices a slip there.
const refusals: [answer: Answer, status: number, code: string, message: string, headers?: Record<string, string>][] = [
  [
    answers.alreadySendingBatch,
    429,
    "already-sending-batch",
    "You are sending another batch at the moment. Retry after the delay in Retry-After.",
    { "Retry-After": "10" },
  ],
  [
    answers.answersUnread,
    408,
    "answers-unread",
    "Too many answers wait to be read. Read them while you send, or send fewer lines in one batch.",
  ],
  [
    answers.invalidLine,
    400,
    "invalid-line",
    "Each line must be one JSON object with the members kind (create, update or delete) and payload (an object), and perhaps idempotencyKey (a string). It may have no others.",
  ],
  [answers.bodyTooLarge(65_536), 413, "body-too-large", "The event exceeds the limit of 65536 bytes."],
  [
    answers.differentIdempotencyKeys,
    400,
    "different-idempotency-keys",
    "The request has two Idempotency-Key (or webhook-id) headers with different values. Send only one.",
  ],
  [answers.headersTooLarge, 431, "headers-too-large", "The URL and headers together are too large."],
  [answers.internalError, 500, "internal-error", "An internal error occurred. Retry the same request later."],
  [
    answers.invalidDryRun,
    400,
    "invalid-dry-run",
    "The X-Dry-Run header must be true, 1 or yes, or else false, 0 or no.",
  ],
  [
    answers.invalidIdempotencyKey,
    400,
    "invalid-idempotency-key",
    "The idempotency key (Idempotency-Key, webhook-id, or a line's idempotencyKey) must have 1 to 255 characters, visible ASCII or spaces.",
  ],
  [answers.invalidSecret, 403, "invalid-secret", "Invalid secret"],
  [
    answers.invalidUtf8,
    400,
    "invalid-utf8",
    "The event, or an escape of the form, is not valid UTF-8. Encode it in UTF-8. Outside of a batch, you may declare its charset instead, such as Content-Type: application/json; charset=windows-1252.",
  ],
  [
    answers.wrongContentType({ line: 1, column: 2 }),
    400,
    "wrong-content-type",
    "The body begins with { but is not valid JSON. The error is at line 1, column 2. Send JSON with the header Content-Type: application/json, and write a { at the beginning of a form as %7B.",
  ],
  [
    answers.invalidUtf16,
    400,
    "invalid-utf16",
    "The body is not valid UTF-16. Start it with a byte order mark, or declare utf-16le or utf-16be.",
  ],
  [
    answers.equalNames,
    400,
    "equal-names",
    "Two names in one object differ only in U+0000 or halves of surrogate pairs, which a database cannot store. Check how they were encoded or truncated.",
  ],
  [
    answers.malformedHttp,
    400,
    "malformed-http",
    "The request is not valid HTTP/1.1, or its method is unknown. Send a POST request with a Host header.",
  ],
  [
    answers.malformedJson({ line: 1, column: 2 }),
    400,
    "malformed-json",
    "The event is not valid JSON. The error is at line 1, column 2.",
  ],
  [
    answers.noSuchPath,
    404,
    "no-such-path",
    "No such path. Use /booking-event/create/{secret}, /booking-event/update/{secret} or /booking-event/delete/{secret}, or read /docs.",
  ],
  [answers.askLookup(), 404, "ask-lookup", "Another service answers this. Ask us for its address."],
  [answers.notAnObject, 400, "not-an-object", "The event must be a single JSON object."],
  [
    answers.overRateLimit(1),
    429,
    "over-rate-limit",
    "You have exceeded your rate limit. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "1" },
  ],
  [
    answers.quota(3_600),
    429,
    "quota",
    "You have used up your quota of bytes for today. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "3600" },
  ],
  [
    answers.partnerHeld,
    503,
    "partner-held",
    "Your events are on hold at the moment. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "60" },
  ],
  [
    answers.overloaded,
    503,
    "overloaded",
    "The service is overloaded. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "5" },
  ],
  [
    answers.partnersUnknown,
    503,
    "partners-unknown",
    "Secrets cannot be verified at the moment. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "5" },
  ],
  [
    answers.queueUnavailable,
    503,
    "queue-unavailable",
    "The event could not be stored. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "5" },
  ],
  [
    answers.repeatedByteOrderMark,
    400,
    "repeated-byte-order-mark",
    "The body starts with more than one byte order mark. Remove them.",
  ],
  [
    answers.repeatedFormField,
    400,
    "repeated-form-field",
    "The form has a listed field more than once. Send each of them only once.",
  ],
  [answers.repeatedHost, 400, "repeated-host", "The request has more than one Host header. Send only one."],
  [
    answers.repeatedJsonKey({ line: 1, column: 2 }),
    400,
    "repeated-json-key",
    "The event has a duplicate key in a JSON object. The duplicate is at line 1, column 2.",
  ],
  [
    answers.shuttingDown,
    503,
    "shutting-down",
    "This server is shutting down. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "1" },
  ],
  [
    answers.tooManyGuesses(60),
    429,
    "too-many-guesses",
    "Too many requests with an invalid secret came from your IP address. Correct the secret, and retry after the delay in Retry-After.",
    { "Retry-After": "60", Connection: "close" },
  ],
  [
    answers.tooMuchToRead,
    503,
    "too-much-to-read",
    "You are sending more data at once than the service can process. Retry the same request after the delay in Retry-After, or send smaller events.",
    { "Retry-After": "1" },
  ],
  [answers.tooSlow, 408, "too-slow", "The request was not received in time. Send it again."],
  [
    answers.twoContentTypes,
    400,
    "two-content-types",
    "The request has conflicting Content-Type headers. Send only one.",
  ],
  [
    answers.unsupportedEncoding,
    415,
    "unsupported-encoding",
    "The encoding of the body is not supported. Send it uncompressed, without a Content-Encoding header.",
  ],
  [
    answers.unsupportedType,
    415,
    "unsupported-type",
    "The Content-Type is missing, malformed or not supported, or its charset is not. Send Content-Type: application/json or application/x-www-form-urlencoded, in UTF-8.",
  ],
  [answers.wrongMethod("GET", "HEAD"), 405, "wrong-method", "Method not allowed. Use GET.", { Allow: "GET, HEAD" }],
  [
    lookupAnswers.alreadyReconciling,
    429,
    "already-reconciling",
    "You are sending another list at the moment. Retry after the delay in Retry-After.",
    { "Retry-After": "10" },
  ],
  [
    lookupAnswers.emptyList,
    400,
    "empty-list",
    "The list is empty. If you have no active booking, add allowEmpty=true to the query. Otherwise, check your export.",
  ],
  [
    lookupAnswers.invalidDay,
    400,
    "invalid-day",
    "day must be one of the last seven days in UTC, such as 2027-05-02. Leave it out for the last 48 hours.",
  ],
  [
    lookupAnswers.invalidFields,
    400,
    "invalid-fields",
    "fields names a field of which we read nothing. Name listed fields that we read, such as fields=consumerPhone,consumerTripArrivalDate, or send fields=all.",
  ],
  [
    lookupAnswers.readingsOff,
    400,
    "readings-off",
    "This service does not return what it reads of your fields. Leave out fields.",
  ],
  [
    lookupAnswers.invalidQuery,
    400,
    "invalid-query",
    "The query is not valid UTF-8. Percent-encode each of its values as UTF-8, such as Zo%C3%AB for Zoë.",
  ],
  [
    lookupAnswers.invalidReference,
    400,
    "invalid-reference",
    "Send one reference in the query, percent-encoded and not blank, and referenceKind=consumer if it is a consumer's.",
  ],
  [lookupAnswers.listTooLong(2_000_000), 413, "list-too-long", "The list has more than 2000000 lines."],
  [
    lookupAnswers.lookupUnavailable,
    503,
    "lookup-unavailable",
    "The question cannot be answered at the moment. Retry the same request after the delay in Retry-After.",
    { "Retry-After": "5" },
  ],
  [lookupAnswers.noSuchBooking, 404, "no-such-booking", "There is no such booking."],
  [lookupAnswers.noSuchEvent, 404, "no-such-event", "There is no such event."],
  [
    lookupAnswers.noSuchPath,
    404,
    "no-such-path",
    "No such path. Use /booking-event/receipt/{secret}/{eventId}, /booking-event/booking/{secret}?reference=…, /booking-event/reconcile/{secret} or /booking-event/activity/{secret}.",
  ],
  [
    lookupAnswers.tooManyDifferences,
    413,
    "too-many-differences",
    "The answer would be too long. Send fewer references at once.",
  ],
  [
    lookupAnswers.unsupportedType,
    415,
    "unsupported-type",
    "The Content-Type is missing or not supported. Send UTF-8 with Content-Type: application/x-ndjson.",
  ],
];

test.each(refusals)("$code is what partners know", (answer, status, code, message, headers) => {
  const expected = { status, code, body: JSON.stringify({ message, code }) };
  expect(answer).toEqual(headers === undefined ? expected : { ...expected, headers });
});

test("the other answers are what partners know", () => {
  const warning: Warning = { message: "m", code: "similar-name", propertyPath: ["a"] };
  const violation: Violation = { message: "m", code: "malformed", propertyPath: ["a"] };
  expect([
    answers.accepted("ID"),
    answers.accepted("ID", [warning]),
    answers.dryRunPassed(),
    answers.dryRunPassed([warning]),
    answers.invalidData([violation]),
    lookupAnswers.invalidListLine([{ message: "m", code: "malformed", propertyPath: ["2"] }]),
  ]).toEqual([
    { status: 200, code: "accepted", body: '{"success":true,"eventId":"ID"}' },
    {
      status: 200,
      code: "accepted",
      body: '{"success":true,"eventId":"ID","warnings":[{"message":"m","code":"similar-name","propertyPath":["a"]}]}',
    },
    { status: 200, code: "dry-run-passed", body: '{"success":true,"dryRun":true}' },
    {
      status: 200,
      code: "dry-run-passed",
      body: '{"success":true,"dryRun":true,"warnings":[{"message":"m","code":"similar-name","propertyPath":["a"]}]}',
    },
    {
      status: 422,
      code: "invalid-data",
      body: '{"message":"Invalid data","code":"invalid-data","violationList":[{"message":"m","code":"malformed","propertyPath":["a"]}]}',
    },
    {
      status: 400,
      code: "invalid-list-line",
      body: '{"message":"The list has invalid lines. Correct them, and send the whole list again.","code":"invalid-list-line","violationList":[{"message":"m","code":"malformed","propertyPath":["2"]}]}',
    },
  ]);
});

test("every refusal is in the table, and named by its code", () => {
  const others = [
    "accepted",
    "dryRunPassed",
    "invalidData",
    "receiptFound",
    "bookingFound",
    "invalidListLine",
    "activityFound",
  ];
  const names = [...Object.keys(answers), ...Object.keys(lookupAnswers)].filter((name) => !others.includes(name));
  const toName = (code: string) => code.replaceAll(/-[a-z]/g, (part) => part.slice(1).toUpperCase());
  expect(refusals.map(([, , code]) => toName(code)).sort()).toEqual(names.sort());
});
