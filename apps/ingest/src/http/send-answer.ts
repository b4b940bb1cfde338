import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Answer } from "./answers.ts";

const headersOfEveryAnswer = {
  "Content-Type": "application/json; charset=utf-8",
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
} as const;

/** How much of a refused body is still read, and for how long, so that its sender gets to our answer. */
const lingerBytes = 256 * 1_024;
const lingerMs = 1_000;

/**
 * Sends the answer, with the given headers beside its own. If a part of the request's body has not come in, the
 * connection closes after it: Node would otherwise go on to read all of it (281 MB of a refused upload, measured) to get
 * at the next request.
 *
 * Node destroys the socket at once after the last byte of an answer with `Connection: close`. The kernel then resets
 * the connection if bytes of the body are waiting, and a reset can take an answer away that the client has not read
 * yet (RFC 9112, section 9.6). So the answer is written, a bounded rest of the body is thrown away, and only then the
 * response ends.
 */
export async function sendAnswer(
  res: ServerResponse,
  answer: Answer,
  { headers, close = false }: { headers?: Answer["headers"]; close?: boolean } = {},
): Promise<void> {
  const bodyIsUnread = hasBody(res.req) && !res.req.complete;
  // Node makes the header of it, and the server takes no further request.
  if (close || bodyIsUnread) res.shouldKeepAlive = false;
  res.writeHead(answer.status, {
    ...headersOfEveryAnswer,
    ...answer.headers,
    ...headers,
    "Content-Length": Buffer.byteLength(answer.body),
  });
  if (bodyIsUnread) {
    res.flushHeaders();
    res.write(answer.body);
    // A client that has closed its side sends nothing more.
    if (!res.req.socket.readableEnded) await discardRestOfBody(res.req);
  }
  res.end(bodyIsUnread ? undefined : answer.body);
}

/**
 * For a connection on which HTTP went wrong, so that there is no response object to send an answer with. What the client
 * still sends is thrown away, within the same bounds.
 */
export function sendAnswerOnSocket(socket: Socket, answer: Answer): void {
  const headers = {
    ...headersOfEveryAnswer,
    ...answer.headers,
    Date: new Date().toUTCString(),
    Connection: "close",
    "Content-Length": Buffer.byteLength(answer.body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join("")}\r\n${answer.body}`);
  discardInput(socket, () => socket.destroy());
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Throws away what the client still sends, so that it gets to our answers.
 *
 * @param stop is called when that was enough
 */
export function discardInput(socket: Socket, stop: () => void): void {
  const enoughBytes = socket.bytesRead + lingerBytes;
  socket.on("data", () => {
    if (socket.bytesRead > enoughBytes) stop();
  });
}

/** As HTTP frames it: a message without these two headers has no body. */
export function hasBody(req: IncomingMessage): boolean {
  return req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > 0;
}

/** Resolves when the body ended, the client is gone, or enough was read. */
function discardRestOfBody(req: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, lingerMs);
  let receivedBytes = 0;
  req.on("data", (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes <= lingerBytes) return;
    req.pause();
    resolve();
  });
  req.once("end", resolve);
  req.once("close", resolve);
  return promise.finally(() => clearTimeout(timer));
}
