import { createServer, type RequestListener, type Server } from "node:http";

const maxConnections = 500;
const requestTimeoutMs = 10_000;
/** A path may name a booking by 8,192 characters, each of which may be nine when it is encoded. */
const maxHeaderBytes = 128 * 1_024;

export function createConsoleServer(answer: RequestListener): Server {
  const timeouts = { requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs };
  const server = createServer({ ...timeouts, maxHeaderSize: maxHeaderBytes }, answer);
  server.maxConnections = maxConnections;
  return server;
}
