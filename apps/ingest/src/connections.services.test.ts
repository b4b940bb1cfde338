import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { waitFor } from "@booking-events/harness";
import {
  type Connection,
  connect,
  exchange,
  type RequestParts,
  requestBytes,
} from "@booking-events/harness/http-client";
import { acmeSecret } from "@booking-events/harness/partners";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { maxArrivingBytes } from "./body/arriving-bytes.ts";
import { limiterOf, startIngest, type TestIngest } from "./testing/start-ingest.ts";

const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"T-1"}';

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

describe("a body in small chunks", () => {
  test("is read completely", async () => {
    const long = booking.replace("}", `,"consumerTripVenueName":"${"x".repeat(900)}"}`);
    for (const [body, chunkBytes] of [
      [long, 1],
      [long.padEnd(20_000), 20],
      [long.padEnd(65_536), 64],
    ] as const) {
      const answer = await exchange(ingest.port, { path: create, body, chunkBytes });
      expect([chunkBytes, answer.status]).toEqual([chunkBytes, 200]);
    }
    const encoded = `/booking-event/create/%${acmeSecret.charCodeAt(0).toString(16)}${acmeSecret.slice(1)}`;
    expect(await exchange(ingest.port, { path: encoded, body: booking, chunkBytes: 10 })).toMatchObject({
      status: 200,
    });
  });

  test.each<[string, RequestParts, number]>([
    ["a known secret", { path: "/booking-event/create/nobody" }, 403],
    ["a valid secret", { path: "/booking-event/create/acme-expired" }, 403],
    ["the secret of a partner that is enabled", { path: "/booking-event/create/closed-secret" }, 403],
    ["a secret for this kind of event", { path: "/booking-event/create/updater-secret" }, 403],
    ["a path that exists", { path: `/booking-event/nothing/${acmeSecret}` }, 404],
    ["exactly that path", { path: `${create}/more` }, 404],
    ["the right method", { method: "PUT", path: create }, 405],
    ["one host", { path: create, headers: { host: "other" } }, 400],
  ])("is not parsed without %s", async (_what, { headers, ...request }, status) => {
    const connection = await connect(ingest.port);
    const sent = requestBytes({ ...request, headers: { ...headers, "Transfer-Encoding": "chunked" } });
    // Parsed, this would be an error.
    connection.send(Buffer.concat([sent, Buffer.from("no chunk\r\n")]));
    expect(await connection.answer()).toMatchObject({ status, headers: { Connection: "close" } });
    await connection.closed;
  });

  test("is not parsed any more once it is refused", async () => {
    const failures: Error[] = [];
    const count = (error: Error) => void failures.push(error);
    ingest.server.server.on("clientError", count);
    const connection = await connect(ingest.port);
    const headers = { "Content-Type": "application/zip", "Transfer-Encoding": "chunked" };
    connection.send(Buffer.concat([requestBytes({ path: create, headers }), Buffer.from("1\r\n{\r\n")]));
    expect(await connection.answer()).toMatchObject({ status: 415, headers: { Connection: "close" } });
    // Parsed, this would be an error.
    connection.send("no chunk\r\n");
    await connection.closed;
    expect(failures).toEqual([]);
    ingest.server.server.off("clientError", count);
  });
});

describe("a large body that is refused", () => {
  const uploadBytes = 300_000_000;
  const json = { "Content-Type": "application/json" };
  const declared = { "Content-Length": String(uploadBytes) };
  const chunked = { "Transfer-Encoding": "chunked" };
  test.each<[string, RequestParts, number, object[]]>([
    ["a bad secret", { path: "/booking-event/create/nobody", headers: json }, 403, [declared, chunked]],
    ["a bad path", { path: "/nowhere", headers: json }, 404, [declared, chunked]],
    ["a bad method", { method: "PUT", path: create, headers: json }, 405, [declared, chunked]],
    ["its length", { path: create, headers: json }, 413, [declared, chunked]],
    // A declared length is checked first.
    ["its type", { path: create, headers: { "Content-Type": "application/zip" } }, 415, [chunked]],
  ])(
    "for %s is not read: the client gets its answer, and the connection closes",
    async (_why, request, status, framings) => {
      for (const framing of framings) {
        const accepting = new Promise<Socket>((resolve) => ingest.server.server.once("connection", resolve));
        const connection = await connect(ingest.port);
        const serverSocket = await accepting;
        connection.send(requestBytes({ ...request, headers: { ...request.headers, ...framing } }));
        await upload(connection, uploadBytes, "Transfer-Encoding" in framing);
        const answer = await connection.answer();
        expect(answer).toMatchObject({ status, headers: { Connection: "close" } });
        await connection.closed;
        expect(serverSocket.bytesRead).toBeLessThan(1_000_000);
      }
    },
  );

  test("is read a little further, so a client that reads only after sending gets its answer", async () => {
    for (const path of ["/booking-event/create/nobody", create]) {
      const connection = await connect(ingest.port);
      connection.socket.pause();
      connection.send(requestBytes({ path, body: "x".repeat(200_000) }));
      await waitFor(() => connection.socket.writableLength === 0);
      connection.socket.resume();
      expect((await connection.answer()).status).toBe(path === create ? 413 : 403);
    }
    const connection = await connect(ingest.port);
    connection.send(
      requestBytes({ path: "/booking-event/create/nobody", headers: { "Transfer-Encoding": "chunked" } }),
    );
    for (let sent = 0; sent < 20; sent += 1) {
      connection.send(`3e8\r\n${"x".repeat(1_000)}\r\n`);
      await nextTurn();
    }
    expect((await connection.answer()).status).toBe(403);
    expect(connection.socket.errored).toBeNull();
  });
});

describe("bodies that are not complete", () => {
  test("occupy a limited amount of memory for each partner; others are not affected", async () => {
    const before = ingest.observed.length;
    const headers = { "Content-Type": "application/json", "Content-Length": "65536" };
    const begun = Buffer.concat([requestBytes({ path: create, headers }), Buffer.alloc(65_000, " ")]);
    const senders = await Promise.all(Array.from({ length: 300 }, () => connect(ingest.port)));
    for (const sender of senders) sender.send(begun);
    // As many as fit are left to be completed.
    const most = Math.floor(maxArrivingBytes / 65_000);
    const refused = () => ingest.observed.slice(before).filter(({ outcome }) => outcome === "too-much-to-read");
    await waitFor(() => expect(refused().length).toBeGreaterThanOrEqual(senders.length - most));
    expect(refused()).toHaveLength(senders.length - most);
    expect((await exchange(ingest.port, { path: "/booking-event/create/zenith-secret", body: booking })).status).toBe(
      200,
    );
    for (const { socket } of senders) socket.destroy();
    await waitFor(() => expect(ingest.observed.slice(before)).toHaveLength(senders.length + 1));
    const slow = await connect(ingest.port);
    const bytes = requestBytes({ path: create, body: booking.padEnd(40_000) });
    slow.send(bytes.subarray(0, -1));
    await nextTurn();
    slow.send(bytes.subarray(-1));
    expect((await slow.answer()).status).toBe(200);
    slow.socket.destroy();
  });
});

describe("a connection", () => {
  test("serves a partner's requests one after another, even refused ones whose bodies are read", async () => {
    const connection = await connect(ingest.port);
    for (const [request, status] of [
      [{ path: create, body: booking }, 200],
      [{ path: create, body: "{}" }, 422],
      [{ path: create, body: "{" }, 400],
      [{ path: create, body: booking, chunkBytes: 5 }, 200],
    ] as const) {
      connection.send(requestBytes(request));
      const answer = await connection.answer();
      expect([answer.status, answer.headers["Connection"]]).toEqual([status, "keep-alive"]);
    }
    connection.socket.destroy();
  });

  test("gets the same answer wherever the packets of its request end", async () => {
    const bytes = requestBytes({ path: create, body: booking });
    const before = (await ingest.queuedEvents()).length;
    const accepting = new Promise<Socket>((resolve) => ingest.server.server.once("connection", resolve));
    const connection = await connect(ingest.port);
    const serverSocket = await accepting;
    const ends = [10, bytes.length - booking.length, bytes.length - 5, bytes.length];
    for (const end of ends) {
      const received = serverSocket.bytesRead + end;
      connection.send(bytes.subarray(0, end));
      await waitFor(() => serverSocket.bytesRead === received);
      connection.send(bytes.subarray(end));
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { Connection: "keep-alive" } });
    }
    const queued = (await ingest.queuedEvents()).slice(before);
    expect(queued.map(({ payload }) => payload)).toEqual(ends.map(() => JSON.parse(booking)));
    connection.socket.destroy();
  });

  test.each([
    ["a bad secret", { path: "/booking-event/create/nobody" }, 403],
    ["a bad method", { method: "GET", path: create }, 405],
    ["a bad path", { path: "/" }, 404],
    ["no Host header", { path: create, headers: { Host: "" } }, 400],
  ] as const)(
    "ends with the answer to %s, even if a valid request came before it, and more after it",
    async (_why, bad, status) => {
      const good = requestBytes({ path: create, body: booking });
      const before = (await ingest.queuedEvents()).length;
      const connection = await connect(ingest.port);
      connection.send(Buffer.concat([good, requestBytes(bad), good, good]));
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { Connection: "keep-alive" } });
      expect(await connection.answer()).toMatchObject({ status, headers: { Connection: "close" } });
      await connection.closed;
      expect(await ingest.queuedEvents()).toHaveLength(before + 1);
    },
  );

  test("with pipelined requests gets its answers in order", async () => {
    const connection = await connect(ingest.port);
    const one = requestBytes({ path: create, body: booking });
    connection.send(Buffer.concat([one, requestBytes({ path: create, body: "{}" }), one]));
    for (const status of [200, 422, 200]) expect((await connection.answer()).status).toBe(status);
    connection.socket.destroy();
  });

  test("stays open if a request is refused before its body is read but the body has arrived", async () => {
    let requests = 0;
    const limited = await startIngest({
      limiter: limiterOf(async () => {
        requests += 1;
        const refused = requests % 2 === 0;
        await nextTurn();
        return refused ? { retryAfterS: 1, headers: {} } : { headers: {} };
      }),
    });
    const connection = await connect(limited.port);
    const one = requestBytes({ path: create, body: booking });
    for (let round = 0; round < 3; round += 1) {
      connection.send(Buffer.concat([one, one, one, one]));
      for (const status of [200, 429, 200, 429]) {
        expect(await connection.answer()).toMatchObject({ status, headers: { Connection: "keep-alive" } });
      }
    }
    connection.socket.destroy();
    await limited.close();
  });

  test("serves no request after an answer that closes it", async () => {
    let requests = 0;
    const limited = await startIngest({
      limiter: limiterOf(async () => {
        requests += 1;
        return requests === 2 ? { retryAfterS: 1, headers: {} } : { headers: {} };
      }),
    });
    const connection = await connect(limited.port);
    const one = requestBytes({ path: create, body: booking });
    // The second request's body has not arrived when it is answered.
    connection.send(Buffer.concat([one, one.subarray(0, -1)]));
    expect((await connection.answer()).status).toBe(200);
    expect(await connection.answer()).toMatchObject({ status: 429, headers: { Connection: "close" } });
    connection.send(Buffer.concat([one.subarray(-1), one, one]));
    await connection.closed;
    expect(requests).toBe(2);
    await limited.close();
  });

  test("with too many requests in progress gets their answers in order, and closes", async () => {
    const { answerAll, requestCount, ...slow } = await startHolding();
    try {
      const one = requestBytes({ path: create, body: booking });
      const connection = await connect(slow.port);
      connection.send(Buffer.concat(Array.from({ length: 3_000 }, () => one)));
      await waitFor(() => expect(slow.observed).toMatchObject([{ method: "POST", outcome: "too-many-under-way" }]));
      answerAll();
      const answers = [];
      for (let i = 0; i < 16; i += 1) answers.push(await connection.answer());
      expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(200));
      expect(answers.map(({ headers }) => headers["Connection"])).toEqual([...Array(15).fill("keep-alive"), "close"]);
      expect(new Set(answers.map(({ body }) => body)).size).toBe(16);
      await connection.closed;
      expect(requestCount()).toBe(16);
      expect(slow.observed.filter(({ status }) => status === 200)).toHaveLength(16);
    } finally {
      await slow.close();
    }
  });

  test("may repeatedly have as many requests in progress as the limit allows", async () => {
    const connection = await connect(ingest.port);
    const one = requestBytes({ path: create, body: booking });
    for (let round = 0; round < 5; round += 1) {
      connection.send(Buffer.concat(Array.from({ length: 16 }, () => one)));
      for (let i = 0; i < 16; i += 1) expect((await connection.answer()).status).toBe(200);
    }
    expect(connection.isClosed()).toBe(false);
    connection.socket.destroy();
  });

  test("with CONNECT after an event gets the event's answer, then 405, and closes", async () => {
    const { answerAll, ...slow } = await startHolding();
    const connection = await connect(slow.port);
    const one = requestBytes({ path: create, body: booking });
    connection.send(Buffer.concat([one, Buffer.from("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), one]));
    await waitFor(() => expect(slow.observed).toMatchObject([{ method: "CONNECT", status: 405 }]));
    answerAll();
    for (const status of [200, 405]) expect((await connection.answer()).status).toBe(status);
    await connection.closed;
    expect(slow.observed).toHaveLength(2);
    await slow.close();
  });

  test("of a client that asks for another protocol is served in HTTP/1.1", async () => {
    const connection = await connect(ingest.port);
    const headers = {
      Connection: "Upgrade, HTTP2-Settings",
      Upgrade: "h2c",
      "HTTP2-Settings": "AAMAAABkAAQCAAAAAAIAAAAA",
    };
    connection.send(requestBytes({ path: create, headers, body: booking }));
    expect((await connection.answer()).status).toBe(200);
    connection.send(requestBytes({ path: create, body: booking }));
    expect((await connection.answer()).status).toBe(200);
    connection.socket.destroy();
  });

  test("of a client that never reads its answers is closed", async () => {
    const impatient = await startIngest({}, { unreadAnswerTimeoutMs: 500 });
    const connection = await connect(impatient.port);
    connection.socket.pause();
    const tooDeep = "[".repeat(17) + "]".repeat(17);
    const body = `{${Array.from({ length: 50 }, (_, index) => `"${index}":${tooDeep}`).join()}}`;
    const bytes = requestBytes({ path: create, body });
    // Each request is answered before the next is sent, until unread answers fill the connection.
    const answered = () => impatient.observed.length;
    const isBusy = () => [...impatient.connections.all()].some(({ requestsUnderWay }) => requestsUnderWay > 0);
    for (let sent = 1; !isBusy(); sent += 1) {
      connection.send(bytes);
      await waitFor(() => answered() === sent, { intervalMs: 0 });
      await nextTurn();
    }
    await waitFor(() => expect([...impatient.connections.all()]).toEqual([]));
    await impatient.close();
  });

  test("with malformed data after an event still gets the event's answer, and closes", async () => {
    const connection = await connect(ingest.port);
    connection.send(Buffer.concat([requestBytes({ path: create, body: booking }), Buffer.from("rubbish\r\n\r\n")]));
    expect((await connection.answer()).status).toBe(200);
    await connection.closed;
  });

  test("with malformed data after several events gets all their answers, whichever is ready first", async () => {
    const { answerAll, ...slow } = await startHolding();
    const connection = await connect(slow.port);
    const quick = requestBytes({ path: create, headers: { "X-Dry-Run": "true" }, body: booking });
    connection.send(Buffer.concat([requestBytes({ path: create, body: booking }), quick]));
    await waitFor(() => expect(slow.observed).toMatchObject([{ outcome: "dry-run-passed" }]));
    const rejected = once(slow.server.server, "clientError");
    connection.send("rubbish\r\n\r\n");
    await rejected;
    answerAll();
    expect((await connection.answer()).body).toContain("eventId");
    expect((await connection.answer()).body).toContain("dryRun");
    await connection.closed;
    await slow.close();
  });

  test("with malformed data after an answer gets 400, and closes", async () => {
    const connection = await connect(ingest.port);
    connection.send(requestBytes({ path: create, body: booking }));
    expect((await connection.answer()).status).toBe(200);
    connection.send("rubbish\r\n\r\n");
    expect((await connection.answer()).status).toBe(400);
    await connection.closed;
  });

  test("that is half closed during a request gets 400", async () => {
    const connection = await connect(ingest.port);
    connection.socket.end(requestBytes({ path: create, body: booking }).subarray(0, -1));
    expect((await connection.answer()).status).toBe(400);
  });

  test("that breaks during a request queues nothing, and is logged as such", async () => {
    for (const request of [
      { path: create, body: booking },
      { path: create, body: booking, chunkBytes: 9 },
      { path: create, body: booking, chunkBytes: 9, headers: { "Content-Type": "" } },
    ]) {
      const fresh = await startIngest();
      try {
        const reached = once(fresh.server.server, "request");
        const connection = await connect(fresh.port);
        const bytes = requestBytes(request);
        connection.send(
          "headers" in request ? bytes.subarray(0, bytes.indexOf("\r\n\r\n") + 4) : bytes.subarray(0, -1),
        );
        await reached;
        connection.socket.resetAndDestroy();
        await waitFor(() => expect(fresh.observed).toHaveLength(1));
        expect(fresh.observed).toMatchObject([{ status: undefined, outcome: "client-gone", partner: "acme" }]);
        expect(await fresh.queuedEvents()).toEqual([]);
      } finally {
        await fresh.close();
      }
    }
  });
});

describe("the memory of a request", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;

  test("is released once it is answered, even if its connection stays open", async () => {
    const responses: WeakRef<ServerResponse>[] = [];
    ingest.server.server.once("request", (_req, res) => void responses.push(new WeakRef(res)));
    const connection = await connect(ingest.port);
    connection.send(requestBytes({ path: create, body: booking }));
    expect((await connection.answer()).status).toBe(200);
    await waitFor(() => {
      collectGarbage();
      expect(responses.map((response) => response.deref())).toEqual([undefined]);
    });
    expect(connection.isClosed()).toBe(false);
  });
});

describe("a stopping server", () => {
  test("answers requests in progress, and closes idle and unused connections", async () => {
    let isShuttingDown = false;
    const { answerAll, requestCount, ...stopping } = await startHolding({ isShuttingDown: () => isShuttingDown });
    const [unused, idle, busy, sending] = await Promise.all([1, 2, 3, 4].map(() => connect(stopping.port)));
    if (!unused || !idle || !busy || !sending) throw new Error("Four were opened");
    idle.send(requestBytes({ path: create, body: "{}" }));
    expect((await idle.answer()).status).toBe(422);
    busy.send(requestBytes({ path: create, body: booking }));
    const bytes = requestBytes({ path: create, body: booking });
    sending.send(bytes.subarray(0, -1));
    await waitFor(() => requestCount() === 3);

    isShuttingDown = true;
    const stopped = stopping.server.stop();
    await Promise.all([unused.closed, idle.closed]);
    sending.send(bytes.subarray(-1));
    answerAll();
    for (const connection of [busy, sending]) {
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { Connection: "close" } });
    }
    await stopped;
    await stopping.close();
  });

  test("answers all requests in progress on one connection, and closes it after the last", async () => {
    const { answerAll, requestCount, ...stopping } = await startHolding();
    const connection = await connect(stopping.port);
    const one = requestBytes({ path: create, body: booking });
    connection.send(Buffer.concat([one, one, one]));
    await waitFor(() => requestCount() === 3);
    const stopped = stopping.server.stop();
    answerAll();
    for (const header of ["keep-alive", "keep-alive", "close"]) {
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { Connection: header } });
    }
    await stopped;
    await stopping.close();
  });

  test("disconnects a client that does not finish in time", async () => {
    const stopping = await startIngest({}, { requestTimeoutMs: 100, headersTimeoutMs: 100 });
    const reached = once(stopping.server.server, "request");
    const connection = await connect(stopping.port);
    connection.send(requestBytes({ path: create, body: booking }).subarray(0, -1));
    await reached;
    await stopping.server.stop();
    await connection.closed;
    await stopping.close();
  });
});

/** Starts an ingest that answers no event before the test says so. */
async function startHolding(overrides: Parameters<typeof startIngest>[0] = {}) {
  const { promise, resolve: answerAll } = Promise.withResolvers<void>();
  const holding = await startIngest({
    async enqueue() {
      await promise;
      return 1;
    },
    ...overrides,
  });
  let requests = 0;
  holding.server.server.on("request", () => {
    requests += 1;
  });
  return { ...holding, answerAll, requestCount: () => requests };
}

/** Writes until everything is sent or the server closes the connection. */
async function upload(connection: Connection, totalBytes: number, isChunked: boolean): Promise<void> {
  const content = Buffer.alloc(65_536, 120);
  const chunk = isChunked ? Buffer.concat([Buffer.from("10000\r\n"), content, Buffer.from("\r\n")]) : content;
  for (let sent = 0; sent < totalBytes && !connection.isClosed(); sent += content.length) {
    if (connection.socket.write(chunk)) continue;
    await Promise.race([new Promise((resolve) => connection.socket.once("drain", resolve)), connection.closed]);
  }
}
