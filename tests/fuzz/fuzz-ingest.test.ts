import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { fuzzIngest } from "./fuzz-ingest.ts";

test("a server that closes a connection without an answer to a complete request is found", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  await expect(fuzzIngest({ port, connections: 100, seed: 1 })).rejects.toThrow("0 of 1 answers. Seed 1");
});
