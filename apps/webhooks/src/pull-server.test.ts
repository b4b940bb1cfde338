import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createLogger } from "@booking-events/runtime";
import { expect, onTestFinished, test } from "vitest";
import { createPullServer, stopPullServer } from "./pull-server.ts";

/** More than the kernel keeps for a connection. */
const large = Buffer.alloc(64 * 2 ** 20);

async function start(timeoutMs?: number): Promise<Server> {
  const logger = createLogger({ name: "test", level: "silent" });
  const limits = timeoutMs === undefined ? {} : { timeoutMs };
  const server = createPullServer((_, response) => void response.end(large), logger, limits);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

/** Opens a connection from which nothing is read. @returns the server's side of it */
async function open(server: Server, sent = ""): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const client = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void client.destroy());
  const [socket] = (await once(server, "connection")) as [Socket];
  client.pause().write(sent);
  return socket;
}

const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test("a connection whose answer nobody reads is closed", async () => {
  const server = await start(200);
  const socket = await open(server, request);
  await once(socket, "close");
  expect(socket.bytesWritten).toBeGreaterThan(0);
});

test("a stop waits for no connection on which nothing is sent, and for no answer that nobody reads", async () => {
  const server = await start();
  await open(server);
  const unread = await open(server, request);
  await expect.poll(() => unread.bytesWritten).toBeGreaterThan(0);
  await stopPullServer(server, 200);
  expect(unread.destroyed).toBe(true);
});
