import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { stopParserAt } from "./stop-parser.ts";

/** Fails if a new version of Node no longer stops its parser. */
const request = "GET /x HTTP/1.1\r\nHost: x\r\n\r\n";
const opened: { close(): void }[] = [];

afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

async function startServer(most: number) {
  let [messages, requests] = [0, 0];
  class Message extends stopParserAt(() => requests >= most) {
    constructor(socket: Socket) {
      super(socket);
      messages += 1;
    }
  }
  const server = createServer({ IncomingMessage: Message, shouldUpgradeCallback: () => false }, (_req, res) => {
    requests += 1;
    setImmediate(() => res.end());
  });
  server.on("upgrade", (_message, socket) => socket.on("error", () => {}));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  opened.push(server, { close: () => client.destroy() });
  return { server, client, counts: () => ({ messages, requests }) };
}

test("of 3,000 requests in one chunk, only the wanted ones and the next one are created", async () => {
  const { server, client, counts } = await startServer(16);
  const stopped = once(server, "upgrade") as Promise<[IncomingMessage, Socket, Buffer]>;
  client.write(request.repeat(3_000));
  const [message, socket, rest] = await stopped;
  expect(counts()).toEqual({ messages: 17, requests: 16 });
  // The rest is left byte for byte, and the earlier requests can still be answered.
  expect(message.url).toBe("/x");
  const begin = request.length * 17;
  expect(rest.toString()).toBe(request.repeat(3_000).slice(begin, begin + rest.length));
  let answers = "";
  client.setEncoding("latin1").on("data", (text) => {
    answers += text;
  });
  while (answers.split("200 OK").length < 17) await once(client, "data");
  socket.destroy();
});

test("it stops at any kind of request: with a body, for an upgrade, or with Expect: 100-continue", async () => {
  for (const headers of ["Content-Length: 5", "Connection: upgrade\r\nUpgrade: h2c", "Expect: 100-continue"]) {
    const { server, client, counts } = await startServer(1);
    const stopped = once(server, "upgrade") as Promise<[IncomingMessage, Socket]>;
    client.write(`${request}POST /y HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n12345${request}`);
    const [message, socket] = await stopped;
    expect([message.url, counts()]).toEqual(["/y", { messages: 2, requests: 1 }]);
    socket.destroy();
  }
});

test("it knows the URL and the headers, and what follows them is not parsed", async () => {
  const Message = stopParserAt(({ url, headers }) => url === "/y" && headers["transfer-encoding"] === "chunked");
  const server = createServer({ IncomingMessage: Message, shouldUpgradeCallback: () => false }, (_req, res) =>
    res.end(),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  opened.push(server, { close: () => client.destroy() });
  const stopped = once(server, "upgrade") as Promise<[IncomingMessage, Socket, Buffer]>;
  client.write(`${request}POST /y HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n`);
  const [message, socket, rest] = await stopped;
  expect([message.url, rest.toString()]).toEqual(["/y", "1\r\n \r\n"]);
  socket.destroy();
});

test("a server that accepts every request behaves as without it", async () => {
  const { server, client, counts } = await startServer(Number.POSITIVE_INFINITY);
  let handedOver = 0;
  server.on("upgrade", () => {
    handedOver += 1;
  });
  let answers = "";
  client.setEncoding("latin1").on("data", (text) => {
    answers += text;
  });
  client.write(`${request}${request}GET /y HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n`);
  while (answers.split("200 OK").length < 4) await once(client, "data");
  expect([counts(), handedOver]).toEqual([{ messages: 3, requests: 3 }, 0]);
});
