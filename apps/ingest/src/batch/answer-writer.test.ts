import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { watchTurns } from "@booking-events/harness/watch-turns";
import { answers } from "@booking-events/schema";
import { expect, onTestFinished, test } from "vitest";
import { AnswerWriter } from "./answer-writer.ts";

const line = (number: number) => `{"line":${number},"status":200,"eventId":"${crypto.randomUUID()}"}\n`;

/** A response, and a client that reads nothing until it is told to. */
async function respond(): Promise<{ response: ServerResponse; client: Socket }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const requested = once(server, "request");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  client.pause();
  client.write("GET / HTTP/1.0\r\n\r\n");
  const [, response] = await requested;
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  return { response, client };
}

test("answers that nobody reads are held compressed, and are complete in the end", async () => {
  const { response, client } = await respond();
  const writer = new AnswerWriter(response);
  const written: string[] = [];
  // More than a socket's buffers take.
  for (let at = 0; at < 150_000; at += 50) {
    const lines = Array.from({ length: 50 }, (_, index) => line(at + index)).join("");
    written.push(lines);
    writer.write(lines);
    if (at % 5_000 === 0) await new Promise(setImmediate);
  }
  const bytes = written.join("").length;
  expect(writer.heldBytes).toBeGreaterThan(0);
  expect(writer.heldBytes).toBeLessThan(bytes / 3);
  const received: Buffer[] = [];
  client.on("data", (chunk) => void received.push(chunk));
  const ended = once(client, "end");
  client.resume();
  await writer.finish();
  response.end();
  await ended;
  expect(Buffer.concat(received).toString().split("\r\n\r\n")[1]).toBe(written.join(""));
});

test("in one turn of the event loop, little of what is held is written, however fast the client reads", async () => {
  const { response, client } = await respond();
  const writer = new AnswerWriter(response);
  while (writer.heldBytes < 100_000) {
    writer.write(`${"x".repeat(100)}\n`.repeat(500));
    await new Promise(setImmediate);
  }
  const mostInATurn = watchTurns(response);
  client.resume();
  await writer.finish();
  expect(mostInATurn()).toBeGreaterThan(0);
  expect(mostInATurn()).toBeLessThanOrEqual(3 * 65_536);
});

test("a client that reads too little is told so, and one that is gone is not waited for", async () => {
  const { response, client } = await respond();
  const limits = { maxHeldBytes: 10_000, segmentCharacters: 1_000 };
  const writer = new AnswerWriter(response, { ...limits, pace: { graceMs: 50, longestWaitMs: 50 } });
  while (writer.heldBytes <= limits.maxHeldBytes) {
    writer.write(line(1).repeat(1_000));
    await new Promise(setImmediate);
  }
  await expect(writer.waitForRoom()).rejects.toMatchObject({ answer: answers.answersUnread });
  client.destroy();
  await expect(writer.finish()).rejects.toMatchObject({ name: "ClientGone" });
});
