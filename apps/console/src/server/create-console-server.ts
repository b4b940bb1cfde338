import { createServer, type RequestListener, type Server } from "node:http";

const maxConnections = 500;
/** For receiving a whole request, so that slow clients cannot keep the connections. */
const requestTimeoutMs = 10_000;
const headersTimeoutMs = 5_000;
const timeoutCheckIntervalMs = 1_000;
/** A path may name a booking by 8,192 characters, each of which may be nine when it is encoded. */
const maxHeaderBytes = 128 * 1_024;

export function createConsoleServer(answer: RequestListener): Server {
  const timeouts = {
    requestTimeout: requestTimeoutMs,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: timeoutCheckIntervalMs,
  };
  const server = createServer({ ...timeouts, maxHeaderSize: maxHeaderBytes }, answer);
  server.maxConnections = maxConnections;
  return server;
}
