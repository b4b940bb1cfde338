import { once } from "node:events";
import { connect as connectSocket, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { connect, exchange } from "@booking-events/harness/http-client";
import { acmeSecret } from "@booking-events/harness/partners";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startIngest, type TestIngest } from "./testing/start-ingest.ts";

const create = `/booking-event/create/${acmeSecret}`;
const booking = '{"consumerTripPartnerExternalReference":"TRIP-1"}';
let ingest: TestIngest;

beforeAll(async () => {
  ingest = await startIngest();
});
afterAll(() => ingest.close());

describe("two framings of one request", () => {
  // A proxy may use the other framing, and treat the rest as somebody else's request.
  test.each([
    ["Content-Length and Transfer-Encoding", `Content-Length: 4\r\nTransfer-Encoding: chunked`],
    ["Transfer-Encoding and Content-Length", `Transfer-Encoding: chunked\r\nContent-Length: 4`],
    ["a length that is not a number", "Content-Length: 4x"],
    ["a negative length", "Content-Length: -1"],
    ["a length with a sign", "Content-Length: +4"],
  ])("%s: 400, and the connection closes", async (_, headers) => {
    const connection = await connect(ingest.port);
    connection.send(
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n\r\n0\r\n\r\n` +
        `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${booking.length}\r\n\r\n${booking}`,
    );
    const answer = await connection.answer();
    expect(answer.status).toBe(400);
    expect(answer.headers["Connection"]).toBe("close");
    await connection.closed;
    expect(await ingest.queuedEvents()).toEqual([]);
  });

  test("a length shorter than the body: its part is answered, and the rest closes the connection", async () => {
    const connection = await connect(ingest.port);
    connection.send(
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}{"more":1}`,
    );
    expect((await connection.answer()).status).toBe(422);
    await connection.closed;
  });
});

test("a thousand clients that send a byte now and then get 408, and need little memory", async () => {
  const slow = await startIngest({}, { requestTimeoutMs: 3_000, headersTimeoutMs: 2_000, timeoutCheckIntervalMs: 200 });
  const clients: { socket: Socket; received: () => string }[] = [];
  try {
    const begin = (bytes: string) => openSlowly(slow.port, bytes);
    const head = `POST ${create} HTTP/1.1\r\nHost: x\r\n`;
    const withBody = `${head}Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"a":"`;
    global.gc?.();
    const before = process.memoryUsage().rss;
    clients.push(...(await Promise.all(Array.from({ length: 1_000 }, (_, i) => begin(i % 2 ? head : withBody)))));
    for (let round = 0; round < 5; round += 1) {
      for (const { socket } of clients) if (socket.writable) socket.write(round % 2 ? "x" : "X");
      await sleep(200);
    }
    // Another client is served in the meantime.
    expect((await exchange(slow.port, { path: create, body: booking })).status).toBe(200);
    // Client and server share this process. Reserving the announced size of a thousand bodies would take 60 MB more.
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
    await waitFor(() => clients.every(({ socket }) => socket.closed), { timeoutMs: 20_000 });
    expect(clients.filter(({ received }) => received().startsWith("HTTP/1.1 408 ")).length).toBe(1_000);
  } finally {
    for (const { socket } of clients) socket.destroy();
    await slow.close();
  }
}, 60_000);

async function openSlowly(port: number, bytes: string): Promise<{ socket: Socket; received: () => string }> {
  const socket = connectSocket({ port, host: "127.0.0.1" });
  let received = "";
  socket.setEncoding("latin1").on("data", (text) => {
    received += text;
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(bytes);
  return { socket, received: () => received };
}
