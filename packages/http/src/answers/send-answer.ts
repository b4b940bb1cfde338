import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Answer } from "@booking-events/schema";
import { requestIdOf } from "./request-id.ts";

const headersOfEveryAnswer = {
  "Content-Type": "application/json; charset=utf-8",
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
} as const;

/** All readers share the bytes, so slow ones do not occupy memory with copies. */
export interface PageAnswer extends Omit<Answer, "body"> {
  body: Buffer;
}

/** An answer whose body may be too long for the memory. Its length is not known when it begins. */
export interface StreamedAnswer extends Omit<Answer, "body"> {
  /** Writes the body. Resolves when everything has been handed over. */
  stream: (response: ServerResponse) => Promise<void>;
}

/** A client cannot reach a property with a symbol. */
const sentCode = Symbol("sentCode");

/** The code of the answer that was sent, or is being sent. undefined: none yet. */
export function sentCodeOf(res: ServerResponse & { [sentCode]?: string }): string | undefined {
  return res[sentCode];
}

export function isStreamed(answer: Answer | PageAnswer | StreamedAnswer): answer is StreamedAnswer {
  return "stream" in answer;
}

/** How much of a refused body is read, and for how long, so that its sender can read the answer. */
const lingerBytes = 256 * 1_024;
const lingerMs = 1_000;

/**
 * Sends the answer with the additional headers. If part of the request's body has not arrived, the connection is closed
 * afterwards. Otherwise Node would read the rest of the body to get to the next request: 281 MB of one refused upload
 * were measured.
 *
 * Node destroys the socket as soon as it has sent an answer with `Connection: close`. If bytes of the body are still
 * unread, the kernel then resets the connection, and the reset can discard an answer that the client has not read yet
 * (RFC 9112, section 9.6). Therefore the answer is written first, a limited part of the body is read and discarded, and
 * only then the response ends.
 */
export async function sendAnswer(
  res: ServerResponse & { [sentCode]?: string },
  answer: Answer | PageAnswer | StreamedAnswer,
  { headers, close = false }: { headers?: Answer["headers"]; close?: boolean } = {},
): Promise<void> {
  res[sentCode] = answer.code;
  if (isStreamed(answer)) return streamAnswer(res, answer, headers);
  const bodyIsUnread = hasBody(res.req) && !res.req.complete;
  // Node derives the Connection header from this, and the server accepts no further request.
  if (close || bodyIsUnread) res.shouldKeepAlive = false;
  res.writeHead(answer.status, {
    ...headersOfEveryAnswer,
    ...answer.headers,
    ...headers,
    "X-Request-Id": requestIdOf(res.req),
    "Content-Length": Buffer.byteLength(answer.body),
  });
  if (bodyIsUnread) {
    res.flushHeaders();
    res.write(answer.body);
    // A client that has closed its side sends no more data.
    if (!res.req.socket.readableEnded) await discardRestOfBody(res.req);
  }
  res.end(bodyIsUnread ? undefined : answer.body);
}

async function streamAnswer(
  res: ServerResponse,
  { status, headers, stream }: StreamedAnswer,
  moreHeaders: Answer["headers"],
): Promise<void> {
  // The answer may end before the body does.
  if (hasBody(res.req) && !res.req.complete) res.shouldKeepAlive = false;
  res.writeHead(status, { ...headersOfEveryAnswer, ...headers, ...moreHeaders, "X-Request-Id": requestIdOf(res.req) });
  // The body may take minutes to begin, and a proxy waits for headers only so long.
  res.flushHeaders();
  await stream(res);
  if (!res.req.complete && !res.req.socket.readableEnded) await discardRestOfBody(res.req);
  res.end();
}

/**
 * Sends an answer on a connection where HTTP failed, so there is no response object. Further input is discarded within
 * the same limits.
 */
export function sendAnswerOnSocket(socket: Socket, answer: Answer, requestId: string): void {
  const headers = {
    ...headersOfEveryAnswer,
    ...answer.headers,
    "X-Request-Id": requestId,
    Date: new Date().toUTCString(),
    Connection: "close",
    "Content-Length": Buffer.byteLength(answer.body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join("")}\r\n${answer.body}`);
  discardInput(socket, () => socket.destroy());
  endGently(socket);
}

/** Gives the client time to read what was sent, and to stop sending, before the connection is closed. */
export function endGently(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("end", () => socket.destroy());
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Discards the client's input so that it can read our answers.
 *
 * @param stop called when the limit of discarded bytes is reached
 */
export function discardInput(socket: Socket, stop: () => void): void {
  const enoughBytes = socket.bytesRead + lingerBytes;
  socket.on("data", () => {
    if (socket.bytesRead > enoughBytes) stop();
  });
}

/** Such a client sends its body only after we ask for it, which we do once we know that we will read it. */
export function expectsContinue(req: IncomingMessage): boolean {
  return req.httpVersion === "1.1" && /\b100-continue\b/i.test(req.headers.expect ?? "");
}

/** Whether the body comes in chunks, as it should: in any other case, Node refuses the request. */
export function isChunked({ headers }: IncomingMessage): boolean {
  return /\bchunked\s*$/i.test(headers["transfer-encoding"] ?? "");
}

/** In HTTP, a message without either of these headers has no body. */
export function hasBody(req: IncomingMessage): boolean {
  return req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > 0;
}

/** Resolves when the body has ended, the client has disconnected, or a limit is reached. */
function discardRestOfBody(req: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, lingerMs);
  if (isChunked(req)) discardUnparsed(req.socket, resolve);
  else discardParsed(req, resolve);
  req.once("close", resolve);
  return promise.finally(() => clearTimeout(timer));
}

/** @param stop called when the body has ended, or the limit of discarded bytes is reached */
function discardParsed(req: IncomingMessage, stop: () => void): void {
  let receivedBytes = 0;
  req.on("data", (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes <= lingerBytes) return;
    req.pause();
    stop();
  });
  req.once("end", stop);
}

/**
 * Discards chunks without Node's parser, which takes a hundred times as long if they are small. Where they end is not
 * known then.
 *
 * @param stop called when the client has ended its side, or the limit of discarded bytes is reached
 */
function discardUnparsed(socket: Socket, stop: () => void): void {
  socket.removeAllListeners("data");
  discardInput(socket, () => {
    socket.pause();
    stop();
  });
  socket.once("end", stop);
}
