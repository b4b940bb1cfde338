/**
 * Attacks ingest at PORT until it is killed: 200 connections send 256 KiB of the smallest request each, and are opened
 * again as soon as they are closed. With READS they read the answers.
 */
import { connect } from "node:net";

const connections = 200;
/** As much as a client can send before it has to wait, and four times what Node reads at once. */
const requests = Buffer.from("GET /x HTTP/1.1\r\nHost: x\r\n\r\n".repeat(9_400));
const reads = process.env["READS"] === "true";

for (let i = 0; i < connections; i += 1) attack();

function attack(): void {
  const socket = connect(Number(process.env["PORT"]), "127.0.0.1");
  socket.on("error", () => {}).once("close", attack);
  // Only a write that fails tells a client that doesn't read that it was cut off. Otherwise it starts again by itself.
  socket.once("connect", () => socket.write(requests, () => reads || socket.resetAndDestroy()));
  if (reads) socket.resume();
}
