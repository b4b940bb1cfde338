import type { Socket } from "node:net";

/** A client cannot reach a property with a symbol. */
const counted = Symbol("counted");

/**
 * Returns how many bytes were read from the connection since the last call. Called once for each request with a body,
 * this is what the request took, with its headers and whatever frames its body, and what was pipelined behind it.
 */
export function takeBytesRead(socket: Socket & { [counted]?: number }): number {
  const total = socket.bytesRead;
  const bytes = total - (socket[counted] ?? 0);
  socket[counted] = total;
  return bytes;
}
