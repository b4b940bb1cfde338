import { createServer, type RequestListener, type Server } from "node:http";
import type { Logger } from "@booking-events/runtime";

/** Subscribers that pull keep a connection each, and wait on it for up to half a minute. */
const maxConnections = 2_000;
/** For receiving a request, which has no body. */
const requestTimeoutMs = 10_000;
const headersTimeoutMs = 5_000;
/** How long a connection may have no traffic during a request: an answer that nobody reads. Twice the longest wait. */
const silenceTimeoutMs = 60_000;
/** Longer than most load balancers keep idle connections: as KEEP_ALIVE_TIMEOUT_MS of ingest and lookup. */
const keepAliveTimeoutMs = 650_000;
const maxHeaderBytes = 8_192;
/** Connections that are still open this long after a stop are closed. Shutdown waits for no more than 12 s. */
const longestStopMs = 5_000;

export function createPullServer(
  answer: RequestListener,
  logger: Logger,
  { timeoutMs = silenceTimeoutMs }: { timeoutMs?: number } = {},
): Server {
  const server = createServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: headersTimeoutMs,
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
    },
    answer,
  );
  server.timeout = timeoutMs;
  server.maxConnections = maxConnections;
  server.on("drop", () => logger.warn({ maxConnections }, "a connection was refused: too many are open"));
  return server;
}

/** Takes no more connections, closes idle ones, and waits for the requests under way. */
export async function stopPullServer(server: Server, timeLimitMs = longestStopMs): Promise<void> {
  // Node takes a connection on which nothing was sent yet for a busy one.
  const timer = setTimeout(() => server.closeAllConnections(), timeLimitMs);
  await server[Symbol.asyncDispose]();
  clearTimeout(timer);
}
