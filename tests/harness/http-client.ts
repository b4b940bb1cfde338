import { once } from "node:events";
import { connect as connectSocket, type Socket } from "node:net";

/** An answer, byte by byte. */
export interface RawAnswer {
  /** Status line and headers. */
  head: string;
  status: number;
  /** With the names as sent. */
  headers: Record<string, string>;
  body: string;
}

/**
 * A client that sends exactly the given bytes, right or wrong, and shows exactly what came back. No HTTP library sends
 * a malformed request, or shows which bytes arrived before the connection ended.
 */
export interface Connection {
  send(bytes: string | Buffer): void;
  /** The next answer; rejects if the connection ends before it is complete. */
  answer(options?: { toHead?: boolean }): Promise<RawAnswer>;
  /** Resolves when the server has closed the connection. */
  closed: Promise<void>;
  isClosed(): boolean;
  socket: Socket;
}

export async function connect(port: number): Promise<Connection> {
  const socket = connectSocket({ port, host: "127.0.0.1" });
  let received: Buffer = Buffer.alloc(0);
  let isClosed = false;
  const arrivals = new EventTarget();
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      isClosed = true;
      arrivals.dispatchEvent(new Event("change"));
      resolve();
    });
  });
  // A server may also close a connection by a reset.
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    arrivals.dispatchEvent(new Event("change"));
  });
  await once(socket, "connect");

  return {
    socket,
    closed,
    isClosed: () => isClosed,
    send: (bytes) => void socket.write(bytes),
    async answer({ toHead = false } = {}) {
      for (;;) {
        const answer = takeAnswer(received, toHead);
        if (answer !== undefined) {
          received = answer.rest;
          return answer.answer;
        }
        if (isClosed) throw new Error(`The connection ended after: ${JSON.stringify(received.toString("latin1"))}`);
        await once(arrivals, "change");
      }
    },
  };
}

function takeAnswer(received: Buffer, toHead: boolean): { answer: RawAnswer; rest: Buffer } | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const head = received.subarray(0, headEnd).toString("latin1");
  const [statusLine = "", ...lines] = head.split("\r\n");
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2) as [string, string]));
  const bodyStart = headEnd + 4;
  const bodyEnd = bodyStart + (toHead ? 0 : Number(headers["Content-Length"] ?? 0));
  if (received.length < bodyEnd) return undefined;
  const body = received.subarray(bodyStart, bodyEnd).toString();
  const status = Number(statusLine.split(" ")[1]);
  return { answer: { head, status, headers, body }, rest: received.subarray(bodyEnd) };
}

export interface RequestParts {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Sends the body in chunks of this many bytes, without Content-Length. */
  chunkBytes?: number;
}

/** The bytes of a request. A body is JSON unless the headers say otherwise. A header of `""` is left out. */
export function requestBytes({ method = "POST", path, headers = {}, body, chunkBytes }: RequestParts): Buffer {
  const bytes = Buffer.from(body ?? "");
  const all: Record<string, string> = {
    Host: "localhost",
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(chunkBytes !== undefined ? { "Transfer-Encoding": "chunked" } : {}),
    ...(body !== undefined && chunkBytes === undefined ? { "Content-Length": String(bytes.length) } : {}),
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === "" ? [] : [`${name}: ${value}\r\n`]));
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, "latin1");
  return Buffer.concat([head, chunkBytes === undefined ? bytes : toChunks(bytes, chunkBytes)]);
}

function toChunks(bytes: Buffer, chunkBytes: number): Buffer {
  const chunks: (Buffer | string)[] = [];
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    const chunk = bytes.subarray(start, start + chunkBytes);
    chunks.push(`${chunk.length.toString(16)}\r\n`, chunk, "\r\n");
  }
  return Buffer.concat([...chunks, "0\r\n\r\n"].map((part) => Buffer.from(part)));
}

/** Sends one request on a new connection. */
export async function exchange(port: number, request: RequestParts | string | Buffer): Promise<RawAnswer> {
  const connection = await connect(port);
  connection.send(typeof request === "string" || Buffer.isBuffer(request) ? request : requestBytes(request));
  const isHead = typeof request === "object" && "method" in request && request.method === "HEAD";
  try {
    return await connection.answer({ toHead: isHead });
  } finally {
    connection.socket.destroy();
  }
}
