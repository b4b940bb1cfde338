import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { waitFor } from "@booking-events/scripts/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Connection, connect, type RequestParts, requestBytes } from "./testing/http-client.ts";
import { acmeSecret } from "./testing/partners.ts";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"T-1"}';

let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

describe("a large body that is refused", () => {
  const uploadBytes = 300_000_000;
  const json = { "Content-Type": "application/json" };
  test.each<[string, RequestParts, number]>([
    ["a bad secret", { path: "/booking-event/create/nobody", headers: json }, 403],
    ["a bad path", { path: "/nowhere", headers: json }, 404],
    ["a bad method", { method: "PUT", path: create, headers: json }, 405],
    ["its length", { path: create, headers: json }, 413],
    ["its type", { path: create, headers: { "Content-Type": "application/zip" } }, 415],
  ])("for %s is not read: the client gets its answer, and the connection ends", async (_why, request, status) => {
    for (const framing of [{ "Content-Length": String(uploadBytes) }, { "Transfer-Encoding": "chunked" }]) {
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
  });

  test("is read a little further, so that a client that sends first and reads later is not cut off", async () => {
    for (const path of ["/booking-event/create/nobody", create]) {
      const connection = await connect(ingest.port);
      connection.socket.pause();
      connection.send(requestBytes({ path, body: "x".repeat(200_000) }));
      await waitFor(() => connection.socket.writableLength === 0);
      connection.socket.resume();
      expect((await connection.answer()).status).toBe(path === create ? 413 : 403);
    }
  });
});

describe("a connection", () => {
  test("serves one request after another, refused ones too, as long as their bodies are read", async () => {
    const connection = await connect(ingest.port);
    for (const [request, status] of [
      [{ path: create, body: booking }, 200],
      [{ path: create, body: "{}" }, 422],
      [{ path: create, body: "{" }, 400],
      [{ path: "/booking-event/create/nobody" }, 403],
      [{ method: "GET", path: create }, 405],
      [{ path: "/" }, 404],
      [{ path: create, body: booking, chunkBytes: 5 }, 200],
    ] as const) {
      connection.send(requestBytes(request));
      expect((await connection.answer()).status).toBe(status);
    }
    connection.socket.destroy();
  });

  test("on which one request follows the other at once gets its answers in order", async () => {
    const connection = await connect(ingest.port);
    connection.send(
      Buffer.concat([
        requestBytes({ path: create, body: booking }),
        requestBytes({ method: "GET", path: create }),
        requestBytes({ path: create, body: booking }),
      ]),
    );
    for (const status of [200, 405, 200]) expect((await connection.answer()).status).toBe(status);
    connection.socket.destroy();
  });

  test("on which rubbish follows an event still gets the event's answer, and ends", async () => {
    const connection = await connect(ingest.port);
    connection.send(Buffer.concat([requestBytes({ path: create, body: booking }), Buffer.from("rubbish\r\n\r\n")]));
    expect((await connection.answer()).status).toBe(200);
    await connection.closed;
  });

  test("on which rubbish follows an answer gets 400, and ends", async () => {
    const connection = await connect(ingest.port);
    connection.send(requestBytes({ path: create, body: booking }));
    expect((await connection.answer()).status).toBe(200);
    connection.send("rubbish\r\n\r\n");
    expect((await connection.answer()).status).toBe(400);
    await connection.closed;
  });

  test("that is half closed in the middle of a request gets 400", async () => {
    const connection = await connect(ingest.port);
    connection.socket.end(requestBytes({ path: create, body: booking }).subarray(0, -1));
    expect((await connection.answer()).status).toBe(400);
  });

  test("that breaks in the middle of a request queues nothing, and is told as such", async () => {
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

  test("is free once it is answered, though its connection stays", async () => {
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

  test("has none of Koa's listeners in it, which would last until the next full garbage collection", async () => {
    const response = new Promise((resolve) => ingest.server.server.once("request", (_req, res) => resolve(res)));
    const connection = await connect(ingest.port);
    connection.send(requestBytes({ path: create, body: booking }));
    expect(await response).not.toHaveProperty("__onFinished");
    expect((await connection.answer()).status).toBe(200);
  });
});

describe("the server, when it stops", () => {
  test("answers what is under way, and closes what is idle, unused or kept open", async () => {
    let isShuttingDown = false;
    const answerIt = Promise.withResolvers<void>();
    const stopping = await startIngest({
      isShuttingDown: () => isShuttingDown,
      async enqueue() {
        await answerIt.promise;
        return 1;
      },
    });
    let requests = 0;
    stopping.server.server.on("request", () => {
      requests += 1;
    });
    const [unused, idle, busy, sending] = await Promise.all([1, 2, 3, 4].map(() => connect(stopping.port)));
    if (!unused || !idle || !busy || !sending) throw new Error("Four were opened");
    idle.send(requestBytes({ method: "GET", path: create }));
    expect((await idle.answer()).status).toBe(405);
    busy.send(requestBytes({ path: create, body: booking }));
    const bytes = requestBytes({ path: create, body: booking });
    sending.send(bytes.subarray(0, -1));
    await waitFor(() => requests === 3);

    isShuttingDown = true;
    const stopped = stopping.server.stop();
    await Promise.all([unused.closed, idle.closed]);
    sending.send(bytes.subarray(-1));
    answerIt.resolve();
    for (const connection of [busy, sending]) {
      expect(await connection.answer()).toMatchObject({ status: 200, headers: { Connection: "close" } });
    }
    await stopped;
    await stopping.close();
  });

  test("cuts off a client that does not come to an end in its time", async () => {
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

/** Writes until everything is sent or the server ends the connection. */
async function upload(connection: Connection, totalBytes: number, isChunked: boolean): Promise<void> {
  const content = Buffer.alloc(65_536, 120);
  const chunk = isChunked ? Buffer.concat([Buffer.from("10000\r\n"), content, Buffer.from("\r\n")]) : content;
  for (let sent = 0; sent < totalBytes && !connection.isClosed(); sent += content.length) {
    if (connection.socket.write(chunk)) continue;
    await Promise.race([new Promise((resolve) => connection.socket.once("drain", resolve)), connection.closed]);
  }
}
