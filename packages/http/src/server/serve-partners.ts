import type { AddressInfo } from "node:net";
import {
  type FindProblems,
  type FindWarnings,
  installGracefulShutdown,
  type Logger,
  listen,
  type Registry,
  startHealthServer,
  version,
} from "@booking-events/runtime";
import type { PartnerFacingServer } from "./partner-facing-server.ts";

/**
 * Serves partners until the process is told to stop. Resolves when it listens and says whether it is ready.
 *
 * @param options.createServer gets a function that says whether requests must be refused because the process stops
 * @param options.closeConnections is called after the last request was answered
 * @param options.backlog how many connections may wait to be accepted. Default: Node's
 * @throws StartError
 */
export async function servePartners(options: {
  settings: Record<"HOST" | "ADMIN_HOST", string> &
    Record<"PORT" | "ADMIN_PORT" | "SHUTDOWN_DELAY_MS" | "SHUTDOWN_TIMEOUT_MS", number>;
  createServer: (isStopping: () => boolean) => PartnerFacingServer;
  closeConnections: () => Promise<unknown>;
  findProblems: FindProblems;
  findWarnings: FindWarnings;
  backlog?: number;
  logger: Logger;
  metrics: Registry;
}): Promise<void> {
  const { settings, createServer, closeConnections, findProblems, findWarnings, backlog, logger, metrics } = options;
  let isStopping = false;
  const server = createServer(() => isStopping);
  const shutdown = installGracefulShutdown({
    finishWork() {
      isStopping = true;
      return server.stop();
    },
    async closeConnections() {
      healthServer.close();
      await closeConnections();
    },
    delayMs: settings.SHUTDOWN_DELAY_MS,
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
  });
  await listen(server.server, { host: settings.HOST, port: settings.PORT, backlog });
  // Last, because a proxy sends requests as soon as it learns that the process is ready.
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: async () => [
      ...(await findProblems()),
      ...(shutdown.isShuttingDown() ? ["The process is shutting down."] : []),
    ],
    findWarnings,
    metrics,
  });
  logger.info({ version, host: settings.HOST, port: (server.server.address() as AddressInfo).port }, "ready");
}
