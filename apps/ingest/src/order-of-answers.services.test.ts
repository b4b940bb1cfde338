import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, exchange, requestBytes } from "./testing/http-client.ts";
import { acmeSecret } from "./testing/partners.ts";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** What can be wrong with a request, in the order in which it is told: the earlier one hides the later one. */
const faults = [
  { name: "two hosts", status: 400, says: "Host" },
  { name: "no such path", status: 404 },
  { name: "wrong method", status: 405 },
  { name: "invalid secret", status: 403 },
  { name: "too large by its length", status: 413 },
  { name: "two types", status: 400, says: "two different Content-Type" },
  { name: "wrong type", status: 415, says: "with Content-Type" },
  { name: "wrong encoding", status: 415, says: "Content-Encoding" },
  { name: "too large when it is read", status: 413 },
  { name: "not UTF-8", status: 400, says: "UTF-8" },
  { name: "malformed JSON", status: 400, says: "line 1" },
  { name: "malformed key", status: 400, says: "Idempotency-Key" },
  { name: "invalid data", status: 422 },
  { name: "queue unavailable", status: 503 },
] as const;
type Fault = (typeof faults)[number]["name"];

const pairs = faults.flatMap((earlier, index) => faults.slice(index + 1).map((later) => [earlier, later] as const));

let ingest: TestIngest;
let withoutQueue: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
  withoutQueue = await startIngest({ isQueueAvailable: () => false });
});
afterAll(() => Promise.all([ingest.close(), withoutQueue.close()]));

test.each(pairs)("%s before %s", async (earlier, later) => {
  const { port } = later.name === "queue unavailable" ? withoutQueue : ingest;
  const answer = await exchange(port, requestWith([earlier.name, later.name]));
  expect(answer.status).toBe(earlier.status);
  expect(answer.body).toContain("says" in earlier ? earlier.says : "");
});

test("each fault alone is told", async () => {
  for (const { name, status, ...more } of faults) {
    const { port } = name === "queue unavailable" ? withoutQueue : ingest;
    const answer = await exchange(port, requestWith([name]));
    expect([name, answer.status]).toEqual([name, status]);
    expect(answer.body).toContain("says" in more ? more.says : "");
  }
});

test("a request without a fault is accepted", async () => {
  expect((await exchange(ingest.port, requestWith([]))).status).toBe(200);
});

test("a dry run needs no queue, and tells of everything else", async () => {
  const dryRun = (...given: Fault[]) => requestWith(given, ["X-Dry-Run: true"]);
  for (const { name, status } of faults.slice(0, -1)) {
    expect([name, (await exchange(withoutQueue.port, dryRun(name))).status]).toEqual([name, status]);
  }
  expect((await exchange(withoutQueue.port, dryRun())).body).toBe('{"success":true,"dryRun":true}');
});

test("what waited while ingest was frozen is told so after its secret is checked, and before anything else", async () => {
  const frozen = await startIngest({ wasFrozen: () => true, limitPartner: () => expect.unreachable() });
  try {
    expect((await exchange(frozen.port, requestWith("invalid secret"))).status).toBe(403);
    expect((await exchange(frozen.port, requestWith("wrong type"))).status).toBe(503);
  } finally {
    await frozen.close();
  }
});

describe("authentication comes before the body", () => {
  test("a stranger gets 403 although no byte of the body was sent", async () => {
    const headers = { "Content-Length": "1000", "Content-Type": "application/json" };
    expect((await exchange(ingest.port, { path: "/booking-event/create/nobody", headers })).status).toBe(403);
  });

  test("a client that waits to be asked for its body is asked only if it is a partner", async () => {
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
      [{ path, headers: { ...headers, "Content-Type": "text/plain" } }, 415],
      [
        { path, headers: { ...headers, "Content-Type": "", "Content-Length": "", "Transfer-Encoding": "chunked" } },
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
    has("wrong type") ? "Content-Type: text/plain" : "Content-Type: application/json",
    ...(has("two types") ? ["Content-Type: application/x-www-form-urlencoded"] : []),
    ...(has("wrong encoding") ? ["Content-Encoding: gzip"] : []),
    ...(has("malformed key") ? ["Idempotency-Key: a b"] : []),
    isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`,
    ...moreHeaders,
  ];
  const framed = isChunked ? [`${body.length.toString(16)}\r\n`, body, "\r\n0\r\n\r\n"] : [body];
  return Buffer.concat([`${head.join("\r\n")}\r\n\r\n`, ...framed].map((part) => Buffer.from(part)));
}
