import { createServer, type RequestListener, type Server } from "node:http";
import { type Logger, listen } from "@booking-events/runtime";

/** Those who pull keep a connection each, and wait on it for up to half a minute. */
const maxConnections = 1_000;
/** For receiving a request, which has no body. */
const requestTimeoutMs = 10_000;
const headersTimeoutMs = 5_000;
/** Longer than most load balancers keep idle connections. */
const keepAliveTimeoutMs = 65_000;
const maxHeaderBytes = 8_192;

export interface PullServer {
  /** Takes no more requests. Resolves when those under way are answered. */
  stop(): Promise<void>;
}

/** @throws StartError if it cannot listen */
export async function servePull(
  answer: RequestListener,
  { host, port, logger }: { host: string; port: number; logger: Logger },
): Promise<PullServer> {
  const server = createServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: headersTimeoutMs,
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
    },
    answer,
  );
  server.maxConnections = maxConnections;
  server.on("drop", () => logger.warn({ maxConnections }, "a connection was refused: there are too many"));
  await listen(server, { host, port });
  return { stop: () => stop(server) };
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // It ends idle connections, too.
    server.close(() => resolve());
  });
}
