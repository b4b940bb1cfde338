import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { waitFor } from "@booking-events/harness";
import { connect, exchange } from "@booking-events/harness/http-client";
import { acmeSecret, partner, partnersFile } from "@booking-events/harness/partners";
import { createPartnerRegistry, type PartnersFile } from "@booking-events/partners";
import { answers } from "@booking-events/schema";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { limiterOf, startIngest, type TestIngest } from "../testing/start-ingest.ts";

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

const ndjson = { "Content-Type": "application/x-ndjson" };
const booking = (number: number, more = {}) => ({ consumerTripPartnerExternalReference: `T-${number}`, ...more });
const create = (payload: object, more = {}) => JSON.stringify({ kind: "create", payload, ...more });
const many = (count: number, from = 1) =>
  Array.from({ length: count }, (_, index) => `${create(booking(from + index))}\n`).join("");

interface Batch {
  sending: ClientRequest;
  response: Promise<IncomingMessage>;
  /** The lines of the answer, as they arrive. */
  lines(): AsyncIterableIterator<Record<string, unknown>>;
  /** All further lines. */
  rest(): Promise<Record<string, unknown>[]>;
}

function begin({ port }: TestIngest, { secret = acmeSecret, headers = {} as Record<string, string> } = {}): Batch {
  const path = `/booking-event/batch/${secret}`;
  const sending = request({ port, path, method: "POST", headers: { ...ndjson, ...headers } });
  sending.on("error", () => {});
  sending.flushHeaders();
  const response = once(sending, "response").then(([message]) => message as IncomingMessage);
  async function* parsed() {
    for await (const line of createInterface({ input: await response })) yield JSON.parse(line);
  }
  const lines = parsed();
  onTestFinished(() => void sending.destroy());
  async function rest() {
    const all: Record<string, unknown>[] = [];
    for await (const line of lines) all.push(line);
    return all;
  }
  return { sending, response, lines: () => lines, rest };
}

async function send(to: TestIngest, body: string | Buffer, options: Parameters<typeof begin>[1] = {}) {
  const batch = begin(to, options);
  batch.sending.end(body);
  return batch.rest();
}

async function startOwn(overrides: Parameters<typeof startIngest>[0]): Promise<TestIngest> {
  const own = await startIngest(overrides);
  onTestFinished(() => own.close());
  return own;
}

test("each line gets what its event would have got alone, in order, and is queued in that order", async () => {
  const bodies = [
    JSON.stringify(booking(1)),
    "{}",
    `{"consumerTripPartnerExternalReference":"T-2","consumerPhone":7,"x":1.50}`,
    `{"consumerTripPartnerExternalReference":"T-3","consumerTripIsLocal":"perhaps","note":"\\u0000"}`,
    `{"a":1,"a":2}`,
    `{"consumerTripPartnerExternalReference":"T-4","big":12345678901234567890.10}`,
  ];
  const queuedBefore = (await ingest.queuedEvents()).length;
  const alone = [];
  for (const body of bodies) alone.push(await exchange(ingest.port, { path: createPath, body }));
  const answered = await send(
    ingest,
    bodies.map((payload, index) => `{"kind":"create","payload":${payload},"idempotencyKey":"k${index}"}`).join("\r\n"),
  );
  expect(answered).toHaveLength(bodies.length);
  for (const [index, { line, status, eventId, ...members }] of answered.entries()) {
    const { status: statusAlone, body } = alone[index] ?? { body: "{}" };
    const { success: _, eventId: __, ...expected } = JSON.parse(body);
    expect([line, status]).toEqual([index + 1, statusAlone]);
    expect(typeof eventId).toBe(status === 200 ? "string" : "undefined");
    if (members["code"] === "repeated-json-key") expect(members["message"]).toMatch(/line 5, column 35/);
    else expect(members).toEqual(expected);
  }
  const queued = (await ingest.queuedEvents()).slice(queuedBefore);
  const [fromSingles, fromBatch] = [queued.slice(0, 3), queued.slice(3)];
  const idsAnswered = answered.filter(({ status }) => status === 200).map(({ eventId }) => eventId);
  expect(fromBatch.map(({ eventId }) => eventId)).toEqual(idsAnswered);
  expect(fromBatch.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["k0", "k3", "k5"]);
  const contentOf = ({ partner, payload, warnings, secretId }: object & Record<string, unknown>) =>
    JSON.stringify({ partner, payload, warnings, secretId });
  expect(fromBatch.map((event) => contentOf({ ...event }))).toEqual(
    fromSingles.map((event) => contentOf({ ...event })),
  );
});

const createPath = `/booking-event/create/${acmeSecret}`;

test("what is no event is refused by itself, and the next line is read", async () => {
  const lines: [text: string | Buffer, status?: number, code?: string][] = [
    [`\ufeff${create(booking(1))}`, 200],
    [""],
    [" \t\r"],
    ["{", 400, "malformed-json"],
    ["[]", 400, "not-an-object"],
    [Buffer.from('{"kind":"create\xff"}', "latin1"), 400, "invalid-utf8"],
    [JSON.stringify({ kind: "cancel", payload: {} }), 400, "invalid-line"],
    [JSON.stringify({ kind: "create" }), 400, "invalid-line"],
    [JSON.stringify({ kind: "create", payload: [] }), 400, "invalid-line"],
    [create(booking(2), { idempotency_key: "k" }), 400, "invalid-line"],
    [create(booking(2), { idempotencyKey: 7 }), 400, "invalid-idempotency-key"],
    [create(booking(2), { idempotencyKey: "é" }), 400, "invalid-idempotency-key"],
    [create(booking(2), { idempotencyKey: "" }), 200],
    ["[".repeat(10_000), 400, "malformed-json"],
    [`{"kind":"create","payload":{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}}`, 422, "invalid-data"],
    [create(booking(3)).padEnd(65_536), 200],
    [`${create(booking(3)).padEnd(65_536)}\r`, 200],
    [create(booking(4)).padEnd(65_537), 413, "body-too-large"],
    ["x".repeat(200_000), 413, "body-too-large"],
    [JSON.stringify({ kind: "delete", payload: booking(1) }), 200],
  ];
  const body = Buffer.concat(lines.map(([text]) => Buffer.concat([Buffer.from(text), Buffer.from("\n")])));
  const expected = lines.flatMap(([, status, code], index) => (status ? [[index + 1, status, code]] : []));
  for (const chunkBytes of [undefined, 1_000]) {
    const batch = begin(ingest);
    if (chunkBytes === undefined) batch.sending.write(body);
    else for (let at = 0; at < body.length; at += chunkBytes) batch.sending.write(body.subarray(at, at + chunkBytes));
    batch.sending.end();
    const answered = await batch.rest();
    expect(answered.map(({ line, status, code }) => [line, status, code])).toEqual(expected);
    // A line has neither.
    const texts = JSON.stringify(answered.map(({ message, warnings }) => [message, warnings]));
    expect(texts).not.toMatch(/\b(body|header)\b/i);
  }
  const { lines: counts, ...observed } = ingest.observed.at(-1) ?? {};
  expect(observed).toMatchObject({ kind: "batch", partner: "acme", status: 200, outcome: "batch" });
  expect(counts).toEqual({ 200: 5, 400: 10, 413: 2, 422: 1 });
});

test("answers come while the body goes on, and what was answered is in Redis whatever becomes of the connection", async () => {
  const batch = begin(ingest);
  batch.sending.write(`${create(booking(11))}\n`);
  const first = await batch.lines().next();
  expect(first.value).toMatchObject({ line: 1, status: 200 });
  batch.sending.write(`${create(booking(12))}\n{"kind":"cre`);
  const second = await batch.lines().next();
  batch.sending.destroy();
  await waitFor(() => expect(ingest.observed.at(-1)).toMatchObject({ kind: "batch", outcome: "cut-off" }));
  const ids = (await ingest.queuedEvents()).map(({ eventId }) => eventId);
  expect(ids.slice(-2)).toEqual([first.value?.["eventId"], second.value?.["eventId"]]);
});

test("a client that reads nothing before it has sent everything gets every answer, in few calls to Redis", async () => {
  const calls = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await ingest.redis.info("commandstats"))?.[1] ?? 0);
  const callsBefore = await calls();
  const count = 4_000;
  const batch = begin(ingest);
  batch.sending.end(many(count));
  await once(batch.sending, "finish");
  await waitFor(() => expect(batch.sending.writableLength).toBe(0));
  const answered = await batch.rest();
  expect(answered.map(({ line }) => line)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  expect(answered.every(({ status }) => status === 200)).toBe(true);
  expect((await calls()) - callsBefore).toBeLessThan(count / 20);
});

test("when its last answer is written, the usual limits of time apply again", async () => {
  const limitTime = vi.fn();
  const own = await startOwn({ markPaced: () => limitTime });
  const batch = begin(own);
  batch.sending.write(`${create(booking(1))}\n`);
  await batch.lines().next();
  expect(limitTime).not.toHaveBeenCalled();
  batch.sending.end();
  await batch.rest();
  expect(limitTime).toHaveBeenCalledOnce();
});

test("a dry run is one for all lines", async () => {
  const queuedBefore = (await ingest.queuedEvents()).length;
  const answered = await send(ingest, `${create(booking(1))}\n{}\n`, { headers: { "X-Dry-Run": "yes" } });
  expect(answered).toEqual([{ line: 1, status: 200, dryRun: true }, expect.objectContaining({ line: 2, status: 400 })]);
  expect(await ingest.queuedEvents()).toHaveLength(queuedBefore);
});

describe("a batch is refused as a whole", () => {
  test.each([
    ["for its secret", 403, "nobody", {}],
    ["for its type", 415, acmeSecret, { "Content-Type": "application/json" }],
    ["for its charset", 415, acmeSecret, { "Content-Type": "application/x-ndjson; charset=utf-16" }],
    ["for its encoding", 415, acmeSecret, { "Content-Encoding": "gzip" }],
    ["for a malformed dry run", 400, acmeSecret, { "X-Dry-Run": "perhaps" }],
    ["while its partner is on hold", 503, "held-secret", {}],
  ])("%s", async (_why, status, secret, headers) => {
    const batch = begin(ingest, { secret, headers });
    batch.sending.end("{}\n");
    expect((await batch.response).statusCode).toBe(status);
  });

  test("while another one of the partner is under way, and not after it", async () => {
    const first = begin(ingest);
    first.sending.write(`${create(booking(1))}\n`);
    await first.lines().next();
    const second = begin(ingest);
    second.sending.end("\n");
    const { statusCode, headers } = await second.response;
    expect([statusCode, headers["retry-after"]]).toEqual([429, "10"]);
    first.sending.end();
    expect(await first.rest()).toEqual([]);
    await waitFor(async () => {
      const third = begin(ingest);
      third.sending.end("\n");
      expect((await third.response).statusCode).toBe(200);
    });
  });
});

test("kinds that the secret does not allow are refused line by line", async () => {
  const answered = await send(ingest, `${create(booking(1))}\n`, { secret: "updater-secret" });
  expect(answered).toEqual([{ line: 1, status: 403, message: "Invalid secret", code: "invalid-secret" }]);
});

/** Sends a line, changes something, sends another, and returns the answer to that and the end of the connection. */
async function sendAround(to: TestIngest, change: () => void): Promise<Record<string, unknown>> {
  const batch = begin(to);
  batch.sending.write(`${create(booking(1))}\n`);
  expect((await batch.lines().next()).value).toMatchObject({ line: 1, status: 200 });
  change();
  batch.sending.write(`${create(booking(2))}\n${create(booking(3))}\n`);
  const { value: answer } = await batch.lines().next();
  batch.sending.end();
  expect(await batch.rest()).toEqual([]);
  expect((await batch.response).headers.connection).toBe("close");
  return answer ?? {};
}

describe("in the middle of a batch, the answer ends with what an event would get", () => {
  test("while Redis takes none", async () => {
    let isAvailable = true;
    const own = await startOwn({ isQueueAvailable: () => isAvailable });
    const answer = await sendAround(own, () => {
      isAvailable = false;
    });
    const { message, code } = JSON.parse(answers.queueUnavailable.body);
    expect(answer).toEqual({ line: 2, status: 503, retryAfter: 5, message, code });
    expect(own.observed.at(-1)).toMatchObject({ outcome: "queue-unavailable", lines: { 200: 1, 503: 1 } });
    expect(await own.queuedEvents()).toHaveLength(1);
  });

  test("when the load is too high, or the process stops, even if nothing arrives", async () => {
    let isOverloaded = false;
    let isStopping = false;
    const own = await startOwn({ isOverloaded: () => isOverloaded, isShuttingDown: () => isStopping });
    const overloaded = await sendAround(own, () => {
      isOverloaded = true;
    });
    expect(overloaded).toMatchObject({ line: 2, status: 503, code: "overloaded" });
    isOverloaded = false;
    const batch = begin(own);
    batch.sending.write(`${create(booking(1))}\n`);
    await batch.lines().next();
    isStopping = true;
    expect((await batch.lines().next()).value).toMatchObject({ line: 2, status: 503, code: "shutting-down" });
  });

  test("when the secret is revoked, and when the partner is put on hold", async () => {
    let file: PartnersFile = partnersFile;
    const own = await startOwn({ partners: () => createPartnerRegistry(file) });
    const revoked = await sendAround(own, () => {
      file = { partners: [partner("acme", { another: null })] };
    });
    expect(revoked).toMatchObject({ line: 2, status: 403, code: "invalid-secret" });
    file = partnersFile;
    const held = await sendAround(own, () => {
      file = { partners: [partner("acme", { [acmeSecret]: null }, { held: true })] };
    });
    expect(held).toMatchObject({ line: 2, status: 503, code: "partner-held" });
  });

  test("when the partner has used up its bytes of today", async () => {
    let isOverQuota = false;
    const limiter = limiterOf(async () =>
      isOverQuota ? { headers: {}, retryAfterS: 9, isOverQuota } : { headers: {} },
    );
    const own = await startOwn({ limiter });
    const answer = await sendAround(own, () => {
      isOverQuota = true;
    });
    expect(answer).toMatchObject({ line: 2, status: 429, code: "quota", retryAfter: 9 });
  });
});

test("a rate limit slows a batch down, leaves a part to other events, and refuses no line", async () => {
  let tokens = 3;
  let refusals = 0;
  const reserves: (number | undefined)[] = [];
  const limiter = limiterOf(async (_partner, reserve) => {
    reserves.push(reserve);
    tokens -= 1;
    if (tokens >= 0) return { headers: {} };
    refusals += 1;
    tokens = refusals % 3 === 0 ? 2 : 0;
    return { headers: {}, retryAfterS: 1 };
  });
  const own = await startOwn({ limiter });
  const answered = await send(own, many(20));
  expect(answered.map(({ line, status }) => [line, status])).toEqual(
    Array.from({ length: 20 }, (_, index) => [index + 1, 200]),
  );
  // The first token is that of the request.
  expect(new Set(reserves.slice(1))).toEqual(new Set([250]));
});

test("the events of others are answered while a batch goes on", async () => {
  const batch = begin(ingest);
  batch.sending.end(many(4_000));
  await batch.lines().next();
  const path = "/booking-event/create/zenith-secret";
  for (let sent = 0; sent < 20; sent += 1) {
    expect((await exchange(ingest.port, { path, body: JSON.stringify(booking(sent)) })).status).toBe(200);
  }
  // It has not ended yet.
  expect(ingest.observed.at(-1)?.kind).toBe("create");
  expect(await batch.rest()).toHaveLength(3_999);
});

describe("however a batch is framed", () => {
  const line = `${create(booking(1))}\n`;
  const head = (version: string, ...headers: string[]) =>
    `POST /booking-event/batch/${acmeSecret} HTTP/${version}\r\nHost: a\r\nContent-Type: application/x-ndjson\r\n${headers.join("\r\n")}\r\n\r\n`;
  const length = (bytes: number) => `Content-Length: ${bytes}`;
  const isAnswered = /HTTP\/1\.1 200 OK.*"line":1,"status":200/s;

  test.each([
    ["HTTP/1.0", [head("1.0", length(line.length)), line], isAnswered],
    [
      "a client that waits to be asked for it",
      [head("1.1", length(line.length), "Expect: 100-continue"), line],
      /100 Continue.*"line":1,"status":200/s,
    ],
    ["a length that is too long", [head("1.1", length(line.length + 9)), line, undefined], isAnswered],
    [
      "a malformed chunk",
      [head("1.1", "Transfer-Encoding: chunked"), `${line.length.toString(16)}\r\n${line}\r\n`, "zz\r\n"],
      isAnswered,
    ],
    [
      "another request behind it",
      [head("1.1", length(line.length)) + line, "GET /healthz HTTP/1.1\r\n\r\n", undefined],
      isAnswered,
    ],
  ])("%s: what arrived is answered, and the connection ends", async (_what, parts, expected) => {
    const { socket, closed } = await connect(ingest.port);
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk;
    });
    for (const part of parts) {
      if (part === undefined) socket.end();
      else socket.write(part);
      if (part !== parts.at(-1)) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await waitFor(() => expect(received).toMatch(expected));
    socket.end();
    await closed;
    expect(received.match(/"line":/g)).toHaveLength(1);
  });
});

test("what follows on the connection has the usual limit of time", async () => {
  // As if from Redis. The batch has arrived completely then, so that its answer does not close the connection.
  const limiter = limiterOf(async () => {
    await new Promise(setImmediate);
    return { headers: {} };
  });
  const limits = { requestTimeoutMs: 300, timeoutCheckIntervalMs: 50, headersTimeoutMs: 300 };
  const own = await startIngest({ limiter }, limits);
  onTestFinished(() => own.close());
  const { socket, closed } = await connect(own.port);
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
  });
  const head = (kind: string, type: string, bytes: number) =>
    `POST /booking-event/${kind}/${acmeSecret} HTTP/1.1\r\nHost: a\r\nContent-Type: application/${type}\r\nContent-Length: ${bytes}\r\n\r\n`;
  const line = `${create(booking(1))}\n`;
  // The event is begun in the packet that ends the batch, and never finished.
  socket.write(`${head("batch", "x-ndjson", line.length)}${line}${head("create", "json", 100)}{`);
  await closed;
  expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 408"]);
});
