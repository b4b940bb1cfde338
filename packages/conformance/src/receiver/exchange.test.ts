import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { exchange, NoAnswer } from "./exchange.ts";

/** Sends bytes to a server that answers with a text and closes the connection. */
async function exchangeWith(answer: string, sent = "GET / HTTP/1.1\r\n\r\n") {
  let received = "";
  const server = createServer((socket) => {
    socket.on("data", (chunk) => {
      received += chunk;
      if (received.length >= sent.length) socket.end(answer);
    });
    socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const exchanged = await exchange(new URL(`http://127.0.0.1:${port}`), Buffer.from(sent));
  return { ...exchanged, received };
}

test.each([
  "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nöö",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nö\r\n2\r\nö\r\n0\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nöö",
  "HTTP/1.1 200 OK\r\n\r\nöö",
])("an answer is read to its end: %j", async (text) => {
  expect(await exchangeWith(text)).toMatchObject({ status: 200, body: "öö" });
});

test("a repeated header counts as one, and what came is kept", async () => {
  const answer = await exchangeWith("HTTP/1.1 405 No\r\nAllow: GET\r\nallow: POST\r\n\r\n");
  expect(answer).toMatchObject({
    status: 405,
    headers: { allow: "GET, POST" },
    head: "HTTP/1.1 405 No Allow GET allow POST",
  });
});

test("nothing but the given bytes is sent, valid or not", async () => {
  const sent = "BREW  / HTTP/1.1\r\nBad Header: 1\r\n\r\n";
  expect((await exchangeWith("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n", sent)).received).toBe(sent);
});

test.each([
  ["", "the connection was closed without an answer"],
  ["HTTP/1.1 200 OK\r\n", "the connection was closed without an answer"],
  ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nöö", "the connection was closed without an answer"],
  ["HTTP/1.1 100 Continue\r\n\r\n", "the connection was closed without an answer"],
  ["SMTP ready\r\n", "the connection failed (HPE_INVALID_CONSTANT)"],
  [`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(1_048_577)}`, "the answer does not end"],
])("what is no answer is described: %#", async (text, fault) => {
  await expect(exchangeWith(text)).rejects.toThrow(new NoAnswer(fault));
});
