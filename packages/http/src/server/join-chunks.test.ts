import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { joinChunks } from "./join-chunks.ts";

const Message = joinChunks(IncomingMessage);
const createMessage = () => new Message(new Socket());

test("a body has the same bytes in the same order, in far fewer pieces", async () => {
  const message = createMessage();
  const pieces = Array.from({ length: 10_000 }, (_, index) => `${index % 7 === 0 ? "x".repeat(5_000) : index},`);
  const read: Buffer[] = [];
  message.on("data", (piece: Buffer) => read.push(piece));
  for (const [index, piece] of pieces.entries()) {
    message.push(Buffer.from(piece));
    if (index % 1_000 === 0) await nextTurn();
  }
  message.push(null);
  await new Promise((resolve) => message.once("end", resolve));
  expect(Buffer.concat(read).toString()).toBe(pieces.join(""));
  expect(read.length).toBeLessThan(pieces.length / 2);
});

test("what has arrived is read without waiting for more", async () => {
  const message = createMessage();
  for (let index = 0; index < 100; index += 1) message.push(Buffer.from("x"));
  await nextTurn();
  expect(message.read()).toHaveLength(100);
});

test("Node is told to stop reading once nobody reads the body", async () => {
  const message = createMessage();
  let bytes = 0;
  while (message.push(Buffer.alloc(100)) && bytes < 1_000_000) {
    bytes += 100;
    if (bytes % 3_000 === 0) await nextTurn();
  }
  expect(bytes).toBeLessThanOrEqual(message.readableHighWaterMark);
});
