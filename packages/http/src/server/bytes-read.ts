import type { Socket } from "node:net";

/** A client cannot reach a property with a symbol. */
const counted = Symbol("counted");

/**
 * Returns how many bytes were read from the connection since the last call: what a request took, with its headers and
 * whatever frames its body, and what was pipelined behind it. Call it for requests that cost nothing, too. Otherwise the
 * next one pays for them, which may be another partner's, since a proxy's connections carry those of all.
 */
export function takeBytesRead(socket: Socket & { [counted]?: number }): number {
  const total = socket.bytesRead;
  const bytes = total - (socket[counted] ?? 0);
  socket[counted] = total;
  return bytes;
}
