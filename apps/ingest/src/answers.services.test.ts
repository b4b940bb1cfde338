import { waitFor } from "@booking-events/harness";
import {
  connect,
  exchange,
  type RawAnswer,
  type RequestParts,
  requestBytes,
} from "@booking-events/harness/http-client";
import { acmeSecret } from "@booking-events/harness/partners";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** Tests each row of the table of answers as bytes on a real connection. */

const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"T-1"}';

const invalidSecret = '{"message":"Invalid secret","code":"invalid-secret"}';
const noSuchPath =
  '{"message":"No such path. Use /booking-event/create/{secret}, /booking-event/update/{secret} or /booking-event/delete/{secret}, or read /docs.","code":"no-such-path"}';
const usePost = '{"message":"Method not allowed. Use POST.","code":"wrong-method"}';
const malformedHttp =
  '{"message":"The request is not valid HTTP/1.1, or its method is unknown. Send a POST request with a Host header.","code":"malformed-http"}';
const unsupportedType =
  '{"message":"The Content-Type is missing or not supported. Send UTF-8 with Content-Type: application/json or application/x-www-form-urlencoded.","code":"unsupported-type"}';
const unsupportedEncoding =
  '{"message":"The encoding of the body is not supported. Send it uncompressed, without a Content-Encoding header.","code":"unsupported-encoding"}';
const tooLarge = '{"message":"The body exceeds the limit of 65536 bytes.","code":"body-too-large"}';
const unavailable =
  '{"message":"The event could not be stored. Retry the same request after the delay in the Retry-After header.","code":"queue-unavailable"}';

const keptOpen = { Connection: "keep-alive", "Keep-Alive": "timeout=75" };
const closed = { Connection: "close" };

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

describe("200", () => {
  test.each(["create", "update"])("%s, with warnings, which hold no value", async (kind) => {
    const fields = { consumerTripPartnerExternalReference: "T-1", consumerGivenname: "canary", consumerPhone: "07911" };
    const path = `/booking-event/${kind}/${acmeSecret}`;
    const warnings =
      '"warnings":[{"message":"The contract does not list this field. If you mean consumerGivenName, correct the name.",' +
      '"code":"similar-name","propertyPath":["consumerGivenname"]},' +
      '{"message":"The value was kept, but cannot be interpreted. Send the number in E.164 format, with + and the ' +
      'country code, such as +442071838750.","code":"unreadable-phone","propertyPath":["consumerPhone"]}]}';
    const bodies = [
      { headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) },
      {
        headers: { "Content-Type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(fields).toString(),
      },
    ];
    for (const { headers, body } of bodies) {
      const accepted = await exchange(ingest.port, { path, headers, body });
      expect(accepted.body.replace(/"eventId":"[^"]+"/, '"eventId":"…"')).toBe(
        `{"success":true,"eventId":"…",${warnings}`,
      );
      const dryRun = await exchange(ingest.port, { path, headers: { ...headers, "X-Dry-Run": "true" }, body });
      expect(dryRun.body).toBe(`{"success":true,"dryRun":true,${warnings}`);
    }
  });

  test.each(["create", "update", "delete"])("%s, with both types of body", async (kind) => {
    const path = `/booking-event/${kind}/${acmeSecret}`;
    const json = await exchange(ingest.port, { path, body: booking });
    const form = await exchange(ingest.port, {
      path,
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: "consumerTripPartnerExternalReference=T-1",
    });
    for (const answer of [json, form]) {
      expect(answer.status).toBe(200);
      expect(answer.body).toMatch(
        /^\{"success":true,"eventId":"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"\}$/,
      );
      expectHeaders(answer, keptOpen);
      expect(answer.headers["X-Request-Id"]).toBe(JSON.parse(answer.body).eventId);
    }
  });

  test("the id of the request is ours, whatever the client calls it", async () => {
    const headers = { "X-Request-Id": "Canary" };
    const answer = await exchange(ingest.port, { path: create, headers, body: booking });
    expectHeaders(answer, keptOpen);
    expect(JSON.stringify(ingest.observed)).not.toContain("Canary");
  });

  test.each(["true", "TRUE"])("X-Dry-Run: %s queues nothing", async (value) => {
    const queuedBefore = (await ingest.queuedEvents()).length;
    const answer = await exchange(ingest.port, { path: create, headers: { "X-Dry-Run": value }, body: booking });
    expectAnswer(answer, 200, '{"success":true,"dryRun":true}', keptOpen);
    expect(await ingest.queuedEvents()).toHaveLength(queuedBefore);
  });
});

describe("403, with the same bytes for every cause", () => {
  test.each([
    ["unknown", "create/no-such-secret"],
    ["expired", "create/acme-expired"],
    ["of a disabled partner", "create/closed-secret"],
    ["not for this kind", "create/updater-secret"],
    ["empty", "create/"],
    ["in another case", `create/${acmeSecret.toUpperCase()}`],
    ["an undecodable percent escape", "create/%E0%A4%A"],
    ["a bare percent sign", "create/%"],
    ["an escaped slash", `create/${acmeSecret}%2F`],
    ["an escaped U+0000", `create/${acmeSecret}%00`],
    ["double-escaped", `create/${acmeSecret.replace("a", "%2561")}`],
    ["a traversal", `create/..%2F${acmeSecret}`],
    ["very long", `create/${"x".repeat(7_000)}`],
    ["in the query", `create/?${acmeSecret}`],
    ["unknown, for update", "update/no-such-secret"],
    ["unknown, for delete", "delete/no-such-secret"],
  ])("%s", async (_cause, path) => {
    for (const body of [undefined, booking]) {
      const answer = await exchange(ingest.port, { path: `/booking-event/${path}`, ...(body && { body }) });
      expectAnswer(answer, 403, invalidSecret, closed);
      // Compared byte by byte, because an object would hide the order of headers and repeated ones.
      expect(withoutDateAndId(answer.head)).toBe(invalidSecretHead);
    }
  });

  test("a percent-encoded secret is accepted", async () => {
    const encoded = acmeSecret.replace("a", "%61");
    expect((await exchange(ingest.port, { path: `/booking-event/create/${encoded}`, body: booking })).status).toBe(200);
  });
});

test("422 lists every violation", async () => {
  const body = '{"consumerGivenName":1,"consumerTripBookingDate":"2026-01-01","agentEmail":"x"}';
  const answer = await exchange(ingest.port, { path: create, body });
  expect(answer.status).toBe(422);
  expectHeaders(answer, keptOpen);
  const { message, code, violationList, ...rest } = JSON.parse(answer.body);
  expect({ message, code, rest }).toEqual({ message: "Invalid data", code: "invalid-data", rest: {} });
  for (const violation of violationList) {
    expect(violation).toEqual({
      message: expect.stringMatching(/\.$/),
      code: expect.any(String),
      propertyPath: [expect.any(String)],
    });
  }
  expect(violationList.flatMap((violation: { propertyPath: string[] }) => violation.propertyPath).sort()).toEqual([
    "agentEmail",
    "consumerGivenName",
    "consumerTripBookingDate",
    "consumerTripPartnerExternalReference",
  ]);
});

test("422 contains no unpaired surrogate, whatever names were sent", async () => {
  const long = `${"n".repeat(254)}😀`;
  const body = `${booking.slice(0, -1)},"${long}":"\\u0000","\\ud83d":1}`;
  const answer = await exchange(ingest.port, { path: create, body });
  expect(answer.body).not.toMatch(/\\ud[89a-f]/i);
  const paths = JSON.parse(answer.body).violationList.map(
    ({ propertyPath }: { propertyPath: string[] }) => propertyPath,
  );
  expect(paths).toEqual([[`${"n".repeat(254)}…`], ["\ufffd"]]);
});

describe("422 for a number that loses digits as a double", () => {
  const withAmount = (amount: string) => `${booking.slice(0, -1)},"price":{"amount":${amount}}}`;

  test.each([
    ...["0.1234567890123456789", "1e-400", "9007199254740993", "-9007199254740992", "1e21", "1e400"],
    ...["9007199254740992.5", "1.00000000000000001", "90071992547409930e-1"],
  ])("%s", async (amount) => {
    for (const path of [create, `/booking-event/delete/${acmeSecret}`]) {
      const answer = await exchange(ingest.port, { path, body: withAmount(amount) });
      expect(answer.status).toBe(422);
      expect(JSON.parse(answer.body)).toEqual({
        message: "Invalid data",
        code: "invalid-data",
        violationList: [
          {
            message: expect.stringMatching(/^Must be a number/),
            code: expect.any(String),
            propertyPath: ["price", "amount"],
          },
        ],
      });
    }
  });

  test.each(["10.50", "1.0", "-0", "0.1", "1.0e2", "9007199254740991", "5e-324", `1.${"0".repeat(1_000)}`])(
    "not for %s",
    async (amount) => {
      expect((await exchange(ingest.port, { path: create, body: withAmount(amount) })).status).toBe(200);
    },
  );
});

describe("422 for an absent body", () => {
  const form = { "Content-Type": "application/x-www-form-urlencoded" };
  test.each<[string, RequestParts]>([
    ["no body", { path: create }],
    ["no body, but a type", { path: create, headers: { "Content-Type": "application/json" } }],
    ["an empty JSON body", { path: create, body: "" }],
    ["an empty form", { path: create, headers: form, body: "" }],
    ["an empty body of an unknown type", { path: create, headers: { "Content-Type": "text/plain" }, body: "" }],
    ["an empty chunked body", { path: create, body: "", chunkBytes: 1 }],
    ["an empty chunked body without type", { path: create, headers: { "Content-Type": "" }, body: "", chunkBytes: 1 }],
    ["only a byte order mark, as JSON", { path: create, body: "\ufeff" }],
    ["only a byte order mark", { path: create, headers: form, body: "\ufeff" }],
    [
      "an empty chunked body with a malformed type",
      { path: create, headers: { "Content-Type": ";;;" }, body: "", chunkBytes: 1 },
    ],
    ["a form of only ampersands", { path: create, headers: form, body: "&&" }],
  ])("%s", async (_what, request) => {
    const answer = await exchange(ingest.port, request);
    expect(JSON.parse(answer.body)).toMatchObject({
      message: "Invalid data",
      violationList: [{ propertyPath: ["consumerTripPartnerExternalReference"] }],
    });
    expect(answer.status).toBe(422);
    expectHeaders(answer, keptOpen);
  });
});

test.each(["", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"])(
  "two types of an absent body are ignored: %j",
  async (framing) => {
    const head = `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n${framing}\r\n`;
    const bytes = framing.includes("chunked") ? `${head}0\r\n\r\n` : head;
    expect((await exchange(ingest.port, bytes)).status).toBe(422);
  },
);

describe("400", () => {
  const form = { "Content-Type": "application/x-www-form-urlencoded" };
  test.each<[string, RequestParts, string, string]>([
    [
      "malformed JSON",
      { path: create, body: "{" },
      "malformed-json",
      "The body is not valid JSON. The error is at line 1, column 2.",
    ],
    [
      "blanks",
      { path: create, body: "\n  " },
      "malformed-json",
      "The body is not valid JSON. The error is at line 2, column 3.",
    ],
    [
      "a second byte order mark",
      { path: create, body: `\ufeff\ufeff${booking}` },
      "malformed-json",
      "The body is not valid JSON. The error is at line 1, column 1.",
    ],
    [
      "a JSON key twice, however deep",
      {
        path: create,
        body: `${booking.slice(0, -1)},"x":${"[".repeat(20_000)}{"a":1,"\\u0061":1}${"]".repeat(20_000)}}`,
      },
      "repeated-json-key",
      `The body has a duplicate key in a JSON object. The duplicate is at line 1, column ${booking.length + 20_012}.`,
    ],
    [
      "JSON sent as a form",
      { path: create, headers: form, body: booking },
      "json-sent-as-form",
      "The body is JSON, but was sent as a form. Set the Content-Type: application/json header.",
    ],
    [
      "a second byte order mark of a form",
      { path: create, headers: form, body: "\ufeff\ufeffa=1" },
      "repeated-byte-order-mark",
      "The body starts with more than one byte order mark. Remove them.",
    ],
    ["a JSON array", { path: create, body: `[${booking}]` }, "not-an-object", "The body must be a single JSON object."],
    ["a JSON string", { path: create, body: '"x"' }, "not-an-object", "The body must be a single JSON object."],
    ["JSON null", { path: create, body: "null" }, "not-an-object", "The body must be a single JSON object."],
    [
      "JSON that is not UTF-8",
      { path: create, body: Buffer.from('{"consumerGivenName":"Zo\u00eb"}', "latin1") },
      "invalid-utf8",
      "The body is not valid UTF-8. Encode it in UTF-8.",
    ],
    [
      "a form that is not UTF-8",
      { path: create, headers: form, body: Buffer.from([0x61, 0x3d, 0xff]) },
      "invalid-utf8",
      "The body is not valid UTF-8. Encode it in UTF-8.",
    ],
    [
      "a repeated form field",
      { path: create, headers: form, body: "a=1&a=1" },
      "repeated-form-field",
      "The form has a duplicate field. Send each field only once.",
    ],
    [
      "a bracketed form field",
      { path: create, headers: form, body: "a%5B0%5D=1" },
      "nested-form-field",
      "The form has a field name with brackets. Send a flat list of fields.",
    ],
    [
      "a malformed escape",
      { path: create, headers: form, body: "a=%GG" },
      "malformed-form",
      "The form has invalid percent-encoding. Follow each percent sign with two hexadecimal digits, and encode " +
        "text in UTF-8.",
    ],
    [
      "a malformed Idempotency-Key",
      { path: create, headers: { "Idempotency-Key": "a b" }, body: booking },
      "invalid-idempotency-key",
      "The Idempotency-Key (or webhook-id) header must appear only once, with 1 to 255 visible ASCII characters.",
    ],
    [
      "another value of X-Dry-Run",
      { path: create, headers: { "X-Dry-Run": "1" }, body: booking },
      "invalid-dry-run",
      "The X-Dry-Run header must be true or false.",
    ],
  ])("%s", async (_what, request, code, message) => {
    expectAnswer(await exchange(ingest.port, request), 400, JSON.stringify({ message, code }), keptOpen);
  });

  test.each([
    ["not HTTP", "\u0016\u0003\u0001 hello\r\n\r\n"],
    ["a method that Node does not know", `BREW ${create} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ["a secret that is not ASCII", "POST /booking-event/create/gehe\u00efm HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a malformed header", `POST ${create} HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n`],
    ["two lengths", `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n`],
    [
      "a length and chunks",
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "a malformed chunk",
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    ],
  ])("%s", async (_what, bytes) => {
    expectAnswer(await exchange(ingest.port, bytes), 400, malformedHttp, closed);
  });

  test.each([
    ["two hosts", `POST ${create} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`],
    ["the same host twice", `POST ${create} HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n`],
    ["two hosts in HTTP/1.0", `POST ${create} HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n`],
    ["two hosts, and no such path", "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
    ["two hosts of CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
  ])("%s", async (_what, bytes) => {
    const message = "The request has more than one Host header. Send only one.";
    expectAnswer(await exchange(ingest.port, bytes), 400, JSON.stringify({ message, code: "repeated-host" }), closed);
  });

  test("CONNECT without a Host", async () => {
    expectAnswer(await exchange(ingest.port, "CONNECT a:1 HTTP/1.1\r\n\r\n"), 400, malformedHttp, closed);
  });

  test.each([
    [["application/json", "application/x-www-form-urlencoded"]],
    [["application/json", "text/plain"]],
    [["text/plain", "application/json"]],
    [["application/json", "application/json; charset=utf-8"]],
    [["application/json", "application/json", ""]],
  ])("conflicting types of one body: %j", async (types) => {
    const message = "The request has conflicting Content-Type headers. Send only one.";
    for (const framing of framings) {
      const answer = await exchange(ingest.port, withHeaders(types.map(asContentType), framing));
      expectAnswer(answer, 400, JSON.stringify({ message, code: "two-content-types" }), closed);
    }
  });

  test.each([
    ["a repeated key header", ["Idempotency-Key: k", "Idempotency-Key: k"]],
    ["a repeated webhook-id header", ["webhook-id: k", "Webhook-Id: l"]],
    ["an empty key", ["Idempotency-Key:"]],
    ["an empty key beside a valid one", ["Idempotency-Key: k", "webhook-id:"]],
    ["a key that is too long", [`webhook-id: ${"k".repeat(256)}`]],
    ["a key that is not ASCII", ["Idempotency-Key: k\u00e9"]],
  ])("%s", async (_what, headers) => {
    const message =
      "The Idempotency-Key (or webhook-id) header must appear only once, with 1 to 255 visible ASCII characters.";
    const request = withHeaders([asContentType("application/json"), ...headers]);
    expectAnswer(
      await exchange(ingest.port, request),
      400,
      JSON.stringify({ message, code: "invalid-idempotency-key" }),
      keptOpen,
    );
  });

  test("two different keys", async () => {
    const message =
      "The Idempotency-Key and webhook-id headers are equivalent, but have different values. Send only one of them.";
    const headers = { "Idempotency-Key": "k", "webhook-id": "K" };
    const answer = await exchange(ingest.port, { path: create, headers, body: booking });
    expectAnswer(answer, 400, JSON.stringify({ message, code: "different-idempotency-keys" }), keptOpen);
  });

  test.each([
    ["the same type twice", ["Content-Type: application/json", "content-type: application/json"]],
    ["the same key in both headers", ["Content-Type: application/json", "Idempotency-Key: k", "webhook-id: k"]],
    ["a key of 255 characters", ["Content-Type: application/json", `webhook-id: ${"~".repeat(255)}`]],
  ])("not for %s", async (_what, headers) => {
    for (const framing of framings) {
      expect((await exchange(ingest.port, withHeaders(headers, framing))).status).toBe(200);
    }
  });

  test("HTTP/1.1 without a Host", async () => {
    const answer = await exchange(ingest.port, `POST ${create} HTTP/1.1\r\n\r\n`);
    expectAnswer(answer, 400, malformedHttp, closed);
  });
});

describe("404", () => {
  test.each([
    "/",
    "/booking-event",
    "/booking-event/create",
    `/Booking-Event/create/${acmeSecret}`,
    `/booking-event/Create/${acmeSecret}`,
    `${create}/`,
    `${create}/more`,
    `//booking-event/create/${acmeSecret}`,
    `/booking-event//create/${acmeSecret}`,
    `/booking-event/create//${acmeSecret}`,
    `/booking-event/cancel/${acmeSecret}`,
    `/booking%2Devent/create/${acmeSecret}`,
    `/booking-event/creat%65/${acmeSecret}`,
    `/booking-event/creat%E0%A4%A/${acmeSecret}`,
    `/booking-event%2Fcreate/${acmeSecret}`,
    `/%`,
    `${create}#fragment`,
    "*",
    "http://localhost",
  ])("%s", async (path) => {
    expectAnswer(await exchange(ingest.port, { path }), 404, noSuchPath, closed);
    expectAnswer(await exchange(ingest.port, { path, body: booking }), 404, noSuchPath, closed);
  });

  test.each([`${create}?debug=1`, `${create}?`, `http://localhost${create}`, `HTTP://localhost:8080${create}`])(
    "not for %s",
    async (path) => expect((await exchange(ingest.port, { path, body: booking })).status).toBe(200),
  );

  test("Node does not print a URL with an invalid port, which contains the secret", async () => {
    const warnings: Error[] = [];
    const remember = (warning: Error) => void warnings.push(warning);
    process.on("warning", remember);
    try {
      const answer = await exchange(ingest.port, { path: `http://localhost:80x${create}`, body: booking });
      expect(answer.status).toBe(200);
      await new Promise(setImmediate);
      expect(warnings.map(({ message }) => message)).toEqual([]);
    } finally {
      process.off("warning", remember);
    }
  });
});

describe("405", () => {
  const paths = [create, "/booking-event/update/", "/booking-event/delete/no-such-secret"];
  const methods = ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY"];
  test.each(methods.flatMap((method) => paths.map((path) => [method, path])))("%s %s", async (method, path) => {
    const answer = await exchange(ingest.port, { method: method as string, path: path as string });
    expectAnswer(answer, 405, usePost, { ...closed, Allow: "POST" });
  });

  test("HEAD gets only the headers", async () => {
    const answer = await exchange(ingest.port, { method: "HEAD", path: create });
    expect(answer).toMatchObject({ status: 405, body: "", headers: { Allow: "POST" } });
    expect(answer.headers["Content-Length"]).toBe(String(usePost.length));
  });

  test("the connection closes if there is a body", async () => {
    const answer = await exchange(ingest.port, { method: "PUT", path: create, body: booking });
    expectAnswer(answer, 405, usePost, { ...closed, Allow: "POST" });
  });

  test("CONNECT, which Node would not answer", async () => {
    const answer = await exchange(ingest.port, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n");
    expectAnswer(answer, 405, usePost, { ...closed, Allow: "POST" });
  });

  test("not before 404", async () => {
    expect((await exchange(ingest.port, { method: "GET", path: "/booking-event/create" })).status).toBe(404);
  });
});

describe("408", () => {
  const tooSlow = '{"message":"The request was not received in time. Send it again.","code":"too-slow"}';
  const limits = { requestTimeoutMs: 200, headersTimeoutMs: 100, timeoutCheckIntervalMs: 10 };

  test.each([
    ["headers", `POST ${create} HTTP/1.1\r\nHost: x\r\n`],
    [
      "a body",
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n${booking}`,
    ],
    [
      "a chunked body",
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a"`,
    ],
    ["a chunked body without type", `POST ${create} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`],
  ])("%s that do not end", async (_what, bytes) => {
    const slow = await startIngest({}, limits);
    try {
      const connection = await connect(slow.port);
      connection.send(bytes);
      const answer = await connection.answer();
      expectAnswer(answer, 408, tooSlow, closed);
      await connection.closed;
      await expect.poll(() => slow.observed.map(({ status }) => status)).toEqual([408]);
      expect(slow.observed).toMatchObject([{ requestId: answer.headers["X-Request-Id"] }]);
      expect(slow.observed).not.toMatchObject([{ outcome: "client-gone" }]);
      expect(await slow.queuedEvents()).toEqual([]);
    } finally {
      await slow.close();
    }
  });

  test("an event whose body arrives after 408 is not accepted", async () => {
    const slow = await startIngest({}, limits);
    try {
      const connection = await connect(slow.port);
      const bytes = requestBytes({ path: create, body: booking });
      connection.send(bytes.subarray(0, -1));
      expect((await connection.answer()).status).toBe(408);
      connection.send(bytes.subarray(-1));
      await connection.closed;
      await expect.poll(() => slow.observed).toHaveLength(1);
      expect(await slow.queuedEvents()).toEqual([]);
    } finally {
      await slow.close();
    }
  });
});

describe("413", () => {
  const ofSize = (bytes: number) => `${booking.slice(0, -1)},"note":"${"x".repeat(bytes - booking.length - 10)}"}`;

  test("a body of exactly the limit is accepted, chunked or not", async () => {
    expect(ofSize(65_536)).toHaveLength(65_536);
    expect((await exchange(ingest.port, { path: create, body: ofSize(65_536) })).status).toBe(200);
    expect((await exchange(ingest.port, { path: create, body: ofSize(65_536), chunkBytes: 1_000 })).status).toBe(200);
  });

  test.each<[string, Partial<RequestParts>]>([
    ["with its length", {}],
    ["chunked", { chunkBytes: 1_000 }],
    ["in one chunk", { chunkBytes: 1_000_000 }],
    ["as a form", { headers: { "Content-Type": "application/x-www-form-urlencoded" } }],
  ])("one byte more is not, %s", async (_how, more) => {
    const answer = await exchange(ingest.port, { path: create, body: ofSize(65_537), ...more });
    expectAnswer(answer, 413, tooLarge, closed);
  });

  test("is sent before the body arrives if the length is declared", async () => {
    const headers = { "Content-Type": "application/json", "Content-Length": "65537" };
    expectAnswer(await exchange(ingest.port, { path: create, headers }), 413, tooLarge, closed);
  });
});

describe("415", () => {
  test.each([
    ["no type", ""],
    ["plain text", "text/plain"],
    ["a +json type", "application/vnd.acme+json"],
    ["multipart", "multipart/form-data; boundary=x"],
    ["another charset", "application/json; charset=iso-8859-1"],
    ["another charset, quoted and escaped", 'application/json; charset="u\\tf-1\\6"'],
    ["two charsets", "application/json; charset=utf-8; charset=utf-16"],
    ["two types in one header", "application/json, application/json"],
    ["an unterminated quoted value", 'application/json; charset="utf-8'],
    ["white space around the equals sign", "application/json; charset = utf-8"],
    ["an unquoted value that must be quoted", "application/json; profile=https://example.com"],
  ])("%s", async (_what, contentType) => {
    const request = { path: create, headers: { "Content-Type": contentType }, body: booking };
    expectAnswer(await exchange(ingest.port, request), 415, unsupportedType, closed);
    expectAnswer(await exchange(ingest.port, { ...request, chunkBytes: 7 }), 415, unsupportedType, closed);
  });

  test.each<Record<string, string>>([
    { "Content-Encoding": "gzip" },
    { "Content-Encoding": "br" },
    { "Content-Encoding": "identity, gzip" },
    { "Content-Encoding": "nonsense" },
  ])("%j", async (headers) => {
    expectAnswer(
      await exchange(ingest.port, { path: create, headers, body: booking }),
      415,
      unsupportedEncoding,
      closed,
    );
  });

  test("a transfer coding other than chunked", async () => {
    const headers = { "Transfer-Encoding": "gzip, chunked" };
    const answer = await exchange(ingest.port, { path: create, headers, body: booking, chunkBytes: 7 });
    expectAnswer(answer, 415, unsupportedEncoding, closed);
  });

  test.each<Record<string, string>>([
    { "Content-Encoding": "identity" },
    { "Content-Encoding": "Identity" },
    { "Content-Type": "Application/JSON; Charset=UTF-8;" },
    { "Content-Type": 'application/json; profile="x"' },
    { "Content-Type": 'application/json; profile="a;b=\\"c\\", d"; Charset="ut\\f-8"; ;' },
    { "Content-Type": "application/json;\tboundary=x ; charset=utf-8" },
    { Expect: "the-unexpected" },
  ])("not for %j", async (headers) => {
    expect((await exchange(ingest.port, { path: create, headers, body: booking })).status).toBe(200);
  });
});

describe("431", () => {
  test.each<[string, RequestParts]>([
    ["a header", { path: create, headers: { "X-Large": "x".repeat(8_200) }, body: booking }],
    ["a secret", { path: `/booking-event/create/${"x".repeat(8_200)}` }],
    ["headers of 300 kB, more than one packet", { path: create, headers: { "X-Large": "x".repeat(300_000) } }],
  ])("%s", async (_what, request) => {
    const message = "The URL and headers together are too large.";
    expectAnswer(
      await exchange(ingest.port, request),
      431,
      JSON.stringify({ message, code: "headers-too-large" }),
      closed,
    );
  });
});

describe("500", () => {
  test("reveals nothing about the error", async () => {
    const broken = await startIngest({
      partners() {
        throw new Error("canary");
      },
    });
    try {
      const message = "An internal error occurred. Retry the same request later.";
      expectAnswer(
        await exchange(broken.port, { path: create, body: booking }),
        500,
        JSON.stringify({ message, code: "internal-error" }),
        closed,
      );
      expect(broken.observed).toMatchObject([{ status: 500, outcome: "internal-error", err: expect.any(Error) }]);
    } finally {
      await broken.close();
    }
  });
});

describe("503", () => {
  const later = { ...keptOpen, "Retry-After": "5" };

  test("when Redis is known to be unavailable, without sending it the event", async () => {
    const unfit = await startIngest({ isQueueAvailable: () => false });
    try {
      expectAnswer(await exchange(unfit.port, { path: create, body: booking }), 503, unavailable, later);
      expect(await unfit.queuedEvents()).toEqual([]);
    } finally {
      await unfit.close();
    }
  });

  test("when the queue fails, and the log states the cause", async () => {
    const failing = await startIngest({
      async enqueue() {
        const oom = Object.assign(new Error("OOM command not allowed canary"), { name: "ReplyError" });
        throw new Error("could not be queued", { cause: oom });
      },
    });
    try {
      expectAnswer(await exchange(failing.port, { path: create, body: booking }), 503, unavailable, later);
      expect(failing.observed).toMatchObject([{ status: 503, outcome: "queue-unavailable", cause: "ReplyError OOM" }]);
    } finally {
      await failing.close();
    }
  });

  test("while shutting down, and the connection closes", async () => {
    const stopping = await startIngest({ isShuttingDown: () => true });
    const message = "This server is shutting down. Retry the same request after the delay in the Retry-After header.";
    const paths = [create, "/booking-event/create/"];
    const connections = await Promise.all(paths.map(() => connect(stopping.port)));
    try {
      // Only requests that started before are still answered.
      for (const connection of connections) connection.send("P");
      await waitFor(() => [...stopping.connections.all()].every(({ socket }) => socket.bytesRead > 0));
      const stopped = stopping.server.stop();
      const [answer, other] = await Promise.all(
        connections.map((connection, index) => {
          connection.send(requestBytes({ path: paths[index] ?? "" }).subarray(1));
          return connection.answer();
        }),
      );
      expectAnswer(answer as RawAnswer, 503, JSON.stringify({ message, code: "shutting-down" }), {
        ...closed,
        "Retry-After": "1",
      });
      expectAnswer(other as RawAnswer, 403, invalidSecret, closed);
      await stopped;
    } finally {
      await stopping.close();
    }
  });
});

const framings = ["length", "chunked"] as const;

/** A booking with headers that may be repeated. */
function withHeaders(headers: string[], framing: (typeof framings)[number] = "length"): string {
  const [header, body] =
    framing === "length"
      ? [`Content-Length: ${booking.length}`, booking]
      : ["Transfer-Encoding: chunked", `${booking.length.toString(16)}\r\n${booking}\r\n0\r\n\r\n`];
  return `POST ${create} HTTP/1.1\r\nHost: x\r\n${[...headers, header].join("\r\n")}\r\n\r\n${body}`;
}

function asContentType(type: string): string {
  return `Content-Type: ${type}`;
}

function expectAnswer(answer: RawAnswer, status: number, body: string, more: Record<string, string>): void {
  expect({ status: answer.status, body: answer.body }).toEqual({ status, body });
  expectHeaders(answer, more);
}

/** Exactly these headers; none reveals which software answers. */
function expectHeaders(answer: RawAnswer, more: Record<string, string>): void {
  const { Date: date, "X-Request-Id": requestId, ...headers } = answer.headers;
  expect(requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  expect(Date.parse(date ?? "")).not.toBeNaN();
  expect(headers).toEqual({
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Length": String(Buffer.byteLength(answer.body)),
    ...more,
  });
}

function withoutDateAndId(head: string): string {
  return head.replace(/\r\nDate: [^\r]+ GMT/, "").replace(/\r\nX-Request-Id: [-0-9a-f]{36}/, "");
}

const invalidSecretHead = [
  "HTTP/1.1 403 Forbidden",
  "Content-Type: application/json; charset=utf-8",
  "Cache-Control: no-store",
  "X-Content-Type-Options: nosniff",
  "Referrer-Policy: no-referrer",
  `Content-Length: ${invalidSecret.length}`,
  "Connection: close",
].join("\r\n");
