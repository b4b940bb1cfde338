import {
  createLogger,
  createMetrics,
  installGracefulShutdown,
  listen,
  refuseTracingAgents,
  startHealthServer,
  version,
} from "@booking-events/runtime";
import { createConsole, readSettings } from "./create-console.ts";
import { createConsoleServer } from "./server/create-console-server.ts";

/**
 * Starts the console. It starts without Redis and PostgreSQL too, and is ready then: it says what is out.
 *
 * @throws StartError
 */
export async function runConsole(environment: NodeJS.ProcessEnv): Promise<void> {
  refuseTracingAgents(environment);
  const settings = readSettings(environment);
  const logger = createLogger({ name: "console", level: settings.LOG_LEVEL });
  const registry = createMetrics("console");
  const stopping = new AbortController();
  const { app, close } = createConsole(settings, environment, { logger, stopping: stopping.signal });
  const server = createConsoleServer(app.callback());
  await listen(server, { host: settings.HOST, port: settings.PORT });
  const shutdown = installGracefulShutdown({
    async finishWork() {
      stopping.abort();
      // Takes no more connections, closes idle ones, and waits for the requests under way.
      await server[Symbol.asyncDispose]();
    },
    async closeConnections() {
      healthServer.close();
      await close();
    },
    delayMs: settings.SHUTDOWN_DELAY_MS,
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
  });
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: () => (shutdown.isShuttingDown() ? ["The process is shutting down."] : []),
    metrics: registry,
  });
  logger.info({ version, host: settings.HOST, port: settings.PORT }, "ready");
}
