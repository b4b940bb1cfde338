import { connect, exchange, requestBytes } from "@booking-events/harness/http-client";
import { acmeSecret } from "@booking-events/harness/partners";
import { Refusal } from "@booking-events/http";
import { answers } from "@booking-events/schema";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { limiterOf, startIngest, type TestIngest } from "./testing/start-ingest.ts";

/**
 * Possible faults, in the order in which they are reported: an earlier one hides a later one. Those that are ours, or
 * that lie in how much the partner sends, are tried with each other fault. The conformance kit tries the others.
 */
const faults = [
  { name: "two hosts", status: 400 },
  { name: "no such path", status: 404 },
  { name: "wrong method", status: 405 },
  { name: "invalid secret", status: 403 },
  { name: "shutting down", status: 503, isOurs: true },
  { name: "overloaded", status: 503, isOurs: true },
  { name: "over the rate limit", status: 429, isOurs: true },
  { name: "too large by its length", status: 413 },
  { name: "two types", status: 400 },
  { name: "wrong type", status: 415 },
  { name: "wrong encoding", status: 415 },
  { name: "too large when it is read", status: 413 },
  { name: "too much to read", status: 503, isOurs: true },
  { name: "not UTF-8", status: 400 },
  { name: "malformed JSON", status: 400 },
  { name: "malformed key", status: 400 },
  { name: "invalid data", status: 422 },
  { name: "queue unavailable", status: 503, isOurs: true },
] as const;
type Fault = (typeof faults)[number]["name"];

const pairs = faults
  .flatMap((earlier, index) => faults.slice(index + 1).map((later) => [earlier, later] as const))
  .filter((pair) => pair.some((fault) => "isOurs" in fault));

let ingest: TestIngest;
let conditions: ReadonlySet<Fault>;

beforeAll(async () => {
  ingest = await startIngest({
    isShuttingDown: () => conditions.has("shutting down"),
    isOverloaded: () => conditions.has("overloaded"),
    limiter: limiterOf(async () =>
      conditions.has("over the rate limit") ? { retryAfterS: 7, headers: {} } : { headers: {} },
    ),
    turns: {
      async take(_partner, _bytes, work) {
        if (conditions.has("too much to read")) throw new Refusal(answers.tooMuchToRead);
        return work();
      },
    },
    isQueueAvailable: () => !conditions.has("queue unavailable"),
  });
});
beforeEach(() => {
  conditions = new Set();
});
afterAll(() => ingest.close());

/** Answers with the same status are told apart by their outcome in the log. */
async function answerTo(...given: Fault[]): Promise<{ status: number; outcome: string | undefined; body: string }> {
  conditions = new Set(given);
  const { status, body } = await exchange(ingest.port, requestWith(given));
  return { status, outcome: ingest.observed.at(-1)?.outcome, body };
}

test.each(pairs)("$0.name before $1.name", async (earlier, later) => {
  const alone = await answerTo(earlier.name);
  expect(alone.status).toBe(earlier.status);
  expect(await answerTo(earlier.name, later.name)).toEqual(alone);
});

test("each fault can be told apart by its outcome in the log or by its message", async () => {
  const answers: string[] = [];
  for (const { name } of faults) answers.push(JSON.stringify(await answerTo(name)));
  // A body that is too large can be refused by its declared length or while it is read; both are one fault.
  expect(new Set(answers).size).toBe(faults.length - 1);
});

test("a request without a fault is accepted", async () => {
  expect((await exchange(ingest.port, requestWith([]))).status).toBe(200);
});

test("a dry run needs no queue, and reports all other faults", async () => {
  const dryRun = (...given: Fault[]) => requestWith(given, ["X-Dry-Run: true"]);
  for (const { name, status } of faults.slice(0, -1)) {
    conditions = new Set<Fault>([name, "queue unavailable"]);
    expect([name, (await exchange(ingest.port, dryRun(name))).status]).toEqual([name, status]);
  }
  conditions = new Set<Fault>(["queue unavailable"]);
  expect((await exchange(ingest.port, dryRun())).body).toBe('{"success":true,"dryRun":true}');
});

test("a request that waited during a freeze is refused right after its secret is checked", async () => {
  const frozen = await startIngest({ isLate: () => true, limiter: limiterOf(() => expect.unreachable()) });
  try {
    expect((await exchange(frozen.port, requestWith(["invalid secret"]))).status).toBe(403);
    expect((await exchange(frozen.port, requestWith(["wrong type"]))).status).toBe(503);
  } finally {
    await frozen.close();
  }
});

describe("authentication comes before the body", () => {
  test("a stranger gets 403 before any byte of the body is sent", async () => {
    const headers = { "Content-Length": "1000", "Content-Type": "application/json" };
    expect((await exchange(ingest.port, { path: "/booking-event/create/nobody", headers })).status).toBe(403);
  });

  test("a client that sends Expect: 100-continue gets it only if it is a partner", async () => {
    const path = `/booking-event/create/${acmeSecret}`;
    const body = JSON.stringify({ consumerTripPartnerExternalReference: "T-1" });
    const headers = { Expect: "100-continue", "Content-Type": "application/json", "Content-Length": `${body.length}` };

    const partner = await connect(ingest.port);
    partner.send(requestBytes({ path, headers }));
    expect((await partner.answer()).status).toBe(100);
    partner.send(body);
    expect((await partner.answer()).status).toBe(200);
    partner.socket.destroy();

    for (const [request, status] of [
      [{ path: "/booking-event/create/nobody", headers }, 403],
      [{ path, headers: { ...headers, "Content-Length": "65537" } }, 413],
      [{ path, headers: { ...headers, "Content-Type": "text/html" } }, 415],
      [
        { path, headers: { ...headers, "Content-Type": ";", "Content-Length": "", "Transfer-Encoding": "chunked" } },
        415,
      ],
      [{ path: "/nowhere", headers }, 404],
    ] as const) {
      expect((await exchange(ingest.port, request)).status).toBe(status);
    }
  });
});

function requestWith(given: readonly Fault[], moreHeaders: readonly string[] = []): Buffer {
  const has = (fault: Fault) => given.includes(fault);
  const method = has("wrong method") ? "PUT" : "POST";
  const root = has("no such path") ? "bookings" : "booking-event";
  const secret = has("invalid secret") ? "nobody" : acmeSecret;
  const valid = JSON.stringify({ consumerTripPartnerExternalReference: "T-1" });
  const content = has("malformed JSON") ? "{" : has("invalid data") ? "{}" : valid;
  const isTooLarge = has("too large by its length") || has("too large when it is read");
  const isChunked = has("too large when it is read") && !has("too large by its length");
  const body = Buffer.concat([
    Buffer.from(isTooLarge ? content.padEnd(70_000) : content),
    Buffer.from(has("not UTF-8") ? [0xff] : []),
  ]);
  const head = [
    `${method} /${root}/create/${secret} HTTP/1.1`,
    ...["Host: localhost", ...(has("two hosts") ? ["Host: localhost"] : [])],
    has("wrong type") ? "Content-Type: text/html" : "Content-Type: application/json",
    ...(has("two types") ? ["Content-Type: application/x-www-form-urlencoded"] : []),
    ...(has("wrong encoding") ? ["Content-Encoding: gzip"] : []),
    ...(has("malformed key") ? ["Idempotency-Key: \u00e9"] : []),
    isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`,
    ...moreHeaders,
  ];
  const framed = isChunked ? [`${body.length.toString(16)}\r\n`, body, "\r\n0\r\n\r\n"] : [body];
  return Buffer.concat([`${head.join("\r\n")}\r\n\r\n`, ...framed].map((part) => Buffer.from(part)));
}
