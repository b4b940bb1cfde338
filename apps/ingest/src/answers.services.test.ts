import { once } from "node:events";
import { waitFor } from "@booking-events/harness";
import {
  connect,
  exchange,
  type RawAnswer,
  type RequestParts,
  requestBytes,
} from "@booking-events/harness/http-client";
import { acmeSecret } from "@booking-events/harness/partners";
import { subjectOf } from "@booking-events/queue";
import { type Answer, answers } from "@booking-events/schema";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/**
 * The bytes of each answer on a real connection, what becomes of the connection, and what only this service meets. Which
 * request gets which answer is checked by `conformance.services.test.ts`.
 */

const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"T-1"}';
const json = { "Content-Type": "application/json" };
const form = { "Content-Type": "application/x-www-form-urlencoded" };

const keptOpen = { Connection: "keep-alive", "Keep-Alive": "timeout=60" };
const closed = { Connection: "close" };

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

describe("200", () => {
  test.each([
    ["JSON", json, booking],
    ["a form", form, "consumerTripPartnerExternalReference=T-1"],
  ])("for %s has the event's id as the id of the request", async (_type, headers, body) => {
    const answer = await exchange(ingest.port, { path: create, headers, body });
    const { eventId } = JSON.parse(answer.body);
    expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expectAnswer(answer, answers.accepted(eventId), keptOpen);
    expect(answer.headers["X-Request-Id"]).toBe(eventId);
  });

  test("the id of the request is ours, whatever the client calls it", async () => {
    const headers = { "X-Request-Id": "Canary" };
    const answer = await exchange(ingest.port, { path: create, headers, body: booking });
    expectHeaders(answer, keptOpen);
    expect(JSON.stringify(ingest.observed)).not.toContain("Canary");
  });

  test("of a dry run queues nothing", async () => {
    const queuedBefore = (await ingest.queuedEvents()).length;
    const answer = await exchange(ingest.port, { path: create, headers: { "X-Dry-Run": "true" }, body: booking });
    expectAnswer(answer, answers.dryRunPassed(), keptOpen);
    expect(await ingest.queuedEvents()).toHaveLength(queuedBefore);
  });

  test("warnings hold no value", async () => {
    const fields = { consumerTripPartnerExternalReference: "T-1", consumerGivenname: "canary", consumerPhone: "07911" };
    const answer = await exchange(ingest.port, { path: create, body: JSON.stringify(fields) });
    expect(JSON.parse(answer.body).warnings).toHaveLength(2);
    expect(answer.body).not.toMatch(/canary|07911/);
  });

  test.each([
    ["an expectation that is unknown", { headers: { Expect: "the-unexpected" } }],
    ["an absolute URL", { path: `http://localhost${create}` }],
    ["an absolute URL with a port", { path: `HTTP://localhost:8080${create}` }],
  ])("for %s", async (_what, more) => {
    expect((await exchange(ingest.port, { path: create, body: booking, ...more })).status).toBe(200);
  });
});

describe("the connection stays open after an answer that concerns the event alone", () => {
  const { malformedJson, repeatedJsonKey } = answers;
  const byteOrderMarks = "\ufeff\ufeffa=1";
  test.each<[Answer, Partial<RequestParts>]>([
    [malformedJson({ line: 1, column: 2 }), { body: "{" }],
    [repeatedJsonKey({ line: 1, column: 8 }), { body: '{"a":1,"a":1}' }],
    [answers.notAnObject, { body: "null" }],
    [answers.invalidUtf8, { body: Buffer.from([0xff]) }],
    [answers.wrongContentType({ line: 1, column: 2 }), { headers: form, body: "{" }],
    [answers.unsupportedType, { headers: { "Content-Type": "text/plain" }, body: "a=1" }],
    [answers.equalNames, { body: '{"a\\u0000":1,"a\\ufffd":1}' }],
    [answers.invalidUtf16, { headers: { "Content-Type": "application/json; charset=utf-16" }, body: booking }],
    [answers.repeatedByteOrderMark, { headers: form, body: byteOrderMarks }],
    [answers.repeatedFormField, { headers: form, body: "consumerPhone=1&consumerPhone=1" }],
    [answers.invalidIdempotencyKey, { headers: { "Idempotency-Key": "k".repeat(256) }, body: booking }],
    [answers.invalidDryRun, { headers: { "X-Dry-Run": "on" }, body: booking }],
  ])("$code", async (expected, request) => {
    expectAnswer(await exchange(ingest.port, { path: create, ...request }), expected, keptOpen);
  });

  test("invalid-data, without a value", async () => {
    const answer = await exchange(ingest.port, { path: create, body: `${booking.slice(0, -1)},"consumerPhone":[1]}` });
    const { violationList } = JSON.parse(answer.body);
    expect(violationList).toMatchObject([{ propertyPath: ["consumerPhone"] }]);
    expectAnswer(answer, answers.invalidData(violationList), keptOpen);
  });
});

describe("the connection closes after an answer to what is not read to its end", () => {
  const usePost = answers.wrongMethod("POST");
  const chunked = `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked`;
  test.each<[Answer, string, Partial<RequestParts> | string]>([
    [answers.noSuchPath, "no body", { path: "/booking-event" }],
    [answers.noSuchPath, "a fragment", { path: `${create}#fragment`, body: booking }],
    [answers.noSuchPath, "an asterisk", { path: "*" }],
    [answers.noSuchPath, "an absolute URL without a path", { path: "http://localhost" }],
    [answers.noSuchPath, "another method", { path: "/booking-event/creates", method: "GET" }],
    [usePost, "no body", { method: "GET" }],
    [usePost, "a body", { method: "PUT", body: booking }],
    [usePost, "a method that is new", { method: "QUERY" }],
    // Node would not answer it.
    [usePost, "CONNECT", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"],
    [answers.twoContentTypes, "chunks", `${chunked}\r\nContent-Type: a/b\r\n\r\n1\r\n{\r\n0\r\n\r\n`],
    [answers.unsupportedType, "a body", { headers: { "Content-Type": "text/html" }, body: booking }],
    [answers.unsupportedEncoding, "a content coding", { headers: { "Content-Encoding": "gzip" }, body: booking }],
    [
      answers.unsupportedEncoding,
      "a transfer coding other than chunked",
      { headers: { "Transfer-Encoding": "gzip, chunked" }, body: booking, chunkBytes: 7 },
    ],
    [answers.bodyTooLarge(65_536), "its length", { headers: { ...json, "Content-Length": "65537" } }],
    [answers.bodyTooLarge(65_536), "chunks", { body: booking.padEnd(65_537), chunkBytes: 1_000 }],
    [answers.bodyTooLarge(65_536), "one chunk", { body: booking.padEnd(65_537), chunkBytes: 1_000_000 }],
    [answers.headersTooLarge, "a header", { headers: { "X-Large": "x".repeat(8_200) }, body: booking }],
    [answers.headersTooLarge, "a secret", { path: `/booking-event/create/${"x".repeat(8_200)}` }],
    [answers.malformedHttp, "not HTTP", "\u0016\u0003\u0001 hello\r\n\r\n"],
    [answers.malformedHttp, "a length and chunks", `${chunked}\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`],
    [answers.malformedHttp, "a malformed chunk", `${chunked}\r\n\r\nzz\r\n`],
    [answers.malformedHttp, "CONNECT without a Host", "CONNECT a:1 HTTP/1.1\r\n\r\n"],
    [answers.repeatedHost, "the same host twice", `POST ${create} HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n`],
    [answers.repeatedHost, "HTTP/1.0", `POST ${create} HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n`],
    [answers.repeatedHost, "CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
  ])("$code: %s", async (expected, _what, request) => {
    const answer = await exchange(ingest.port, typeof request === "string" ? request : { path: create, ...request });
    expectAnswer(answer, expected, closed);
  });

  test("HEAD gets only the headers", async () => {
    const answer = await exchange(ingest.port, { method: "HEAD", path: create });
    expect(answer).toMatchObject({ status: 405, body: "", headers: { Allow: "POST" } });
    expect(answer.headers["Content-Length"]).toBe(String(usePost.body.length));
  });
});

describe("403, with the same bytes for every cause", () => {
  test.each([
    ["unknown", "create/no-such-secret"],
    ["expired", "create/acme-expired"],
    ["of a disabled partner", "create/closed-secret"],
    ["not for this kind", "create/updater-secret"],
    ["empty", "create/"],
    ["an undecodable percent escape", "create/%E0%A4%A"],
    ["very long", `create/${"x".repeat(7_000)}`],
    ["unknown, for update", "update/no-such-secret"],
  ])("%s", async (_cause, path) => {
    for (const body of [undefined, booking]) {
      const answer = await exchange(ingest.port, { path: `/booking-event/${path}`, ...(body && { body }) });
      expectAnswer(answer, answers.invalidSecret, closed);
      // Compared byte by byte, because an object would hide the order of headers and repeated ones.
      expect(withoutDateAndId(answer.head)).toBe(invalidSecretHead);
    }
  });
});

describe("a secret in a header", () => {
  const path = "/booking-event/create";
  const bearer = (secret: string) => ({ ...json, Authorization: `Bearer ${secret}` });

  test.each([
    ["with a length", { body: booking, headers: bearer(acmeSecret) }],
    ["in chunks", { body: booking, headers: bearer(acmeSecret), chunkBytes: 10 }],
  ])("is as good as one in the path, %s", async (_what, parts) => {
    const answer = await exchange(ingest.port, { path, ...parts });
    expectAnswer(answer, answers.accepted(JSON.parse(answer.body).eventId), keptOpen);
    const [event] = (await ingest.queuedEvents()).slice(-1);
    expect(event).toMatchObject({ partner: "acme" });
  });

  test.each([
    ["that is wrong", path, bearer("no-such-secret")],
    ["beside one in the path", create, bearer(acmeSecret)],
    ["by another scheme", path, { ...json, Authorization: `Basic ${acmeSecret}` }],
    ["that is missing", path, json],
  ])("%s gets the same 403", async (_what, requestPath, headers) => {
    const answer = await exchange(ingest.port, { path: requestPath, headers, body: booking });
    expect(withoutDateAndId(answer.head)).toBe(invalidSecretHead);
    expect(answer.body).toBe(answers.invalidSecret.body);
    expect(JSON.stringify(ingest.observed.at(-1))).not.toContain(acmeSecret);
  });
});

test("of a refused event, a digest of the reference is recorded, and nothing that was sent", async () => {
  const body = JSON.stringify({ consumerTripPartnerExternalReference: "CANARY", consumerPhone: 7 });
  expect((await exchange(ingest.port, { path: create, body })).status).toBe(422);
  expect(ingest.observed.at(-1)?.subject).toBe(subjectOf("acme", "CANARY"));
  expect(JSON.stringify(ingest.observed.at(-1))).not.toContain("CANARY");
  await exchange(ingest.port, { path: create, body: "{}" });
  expect(ingest.observed.at(-1)?.subject).toBeUndefined();
});

test("a response has none of Koa's listeners: the app is a QuietKoa", async () => {
  const responding = once(ingest.server.server, "request");
  await exchange(ingest.port, { path: create, body: booking });
  const [, response] = await responding;
  expect(response.writableFinished).toBe(true);
  expect(response).not.toHaveProperty("__onFinished");
});

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

describe("408", () => {
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
      expectAnswer(answer, answers.tooSlow, closed);
      await connection.closed;
      await expect.poll(() => slow.observed.map(({ status }) => status)).toEqual([408]);
      const { code: outcome } = answers.tooSlow;
      expect(slow.observed).toMatchObject([{ requestId: answer.headers["X-Request-Id"], outcome, ip: "127.0.0.1" }]);
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

describe("500", () => {
  test("reveals nothing about the error", async () => {
    const broken = await startIngest({
      partners() {
        throw new Error("canary");
      },
    });
    try {
      const answer = await exchange(broken.port, { path: create, body: booking });
      expectAnswer(answer, answers.internalError, closed);
      expect(broken.observed).toMatchObject([{ status: 500, outcome: "internal-error", err: expect.any(Error) }]);
    } finally {
      await broken.close();
    }
  });
});

describe("503", () => {
  test("when Redis is known to be unavailable, without sending it the event", async () => {
    const unfit = await startIngest({ isQueueAvailable: () => false });
    try {
      const answer = await exchange(unfit.port, { path: create, body: booking });
      expectAnswer(answer, answers.queueUnavailable, keptOpen);
      expect(await unfit.queuedEvents()).toEqual([]);
    } finally {
      await unfit.close();
    }
  });

  test.each(["create", "update", "delete"])(
    "for %s of a partner that is on hold, and only by its secret",
    async (kind) => {
      const before = ingest.observed.length;
      const answer = await exchange(ingest.port, { path: `/booking-event/${kind}/held-secret`, body: booking });
      expectAnswer(answer, answers.partnerHeld, closed);
      expect(answer.headers["Retry-After"]).toBe("60");
      expect(ingest.observed.slice(before)).toMatchObject([{ partner: "kept-waiting", outcome: "partner-held" }]);
    },
  );

  test("when the queue fails, and the log states the cause", async () => {
    const failing = await startIngest({
      async enqueue() {
        const oom = Object.assign(new Error("OOM command not allowed canary"), { name: "ReplyError" });
        throw new Error("could not be queued", { cause: oom });
      },
    });
    try {
      const answer = await exchange(failing.port, { path: create, body: booking });
      expectAnswer(answer, answers.queueUnavailable, keptOpen);
      expect(failing.observed).toMatchObject([{ status: 503, outcome: "queue-unavailable", cause: "ReplyError OOM" }]);
    } finally {
      await failing.close();
    }
  });

  test("while shutting down, and the connection closes", async () => {
    const stopping = await startIngest({ isShuttingDown: () => true });
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
      expectAnswer(answer as RawAnswer, answers.shuttingDown, closed);
      expectAnswer(other as RawAnswer, answers.invalidSecret, closed);
      await stopped;
    } finally {
      await stopping.close();
    }
  });
});

function expectAnswer(answer: RawAnswer, { status, body, headers }: Answer, connection: Record<string, string>): void {
  expect({ status: answer.status, body: answer.body }).toEqual({ status, body });
  expectHeaders(answer, { ...headers, ...connection });
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
  `Content-Length: ${answers.invalidSecret.body.length}`,
  "Connection: close",
].join("\r\n");
