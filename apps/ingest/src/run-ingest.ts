import type { AddressInfo } from "node:net";
import { createProducer, createTokenBuckets } from "@booking-events/queue";
import {
  adminPort,
  createLogger,
  createMetrics,
  installGracefulShutdown,
  listen,
  parseEnvironment,
  shutdownPhases,
  startHealthServer,
  variables,
  version,
} from "@booking-events/runtime";
import { createApp } from "./app.ts";
import { createLastUseRecorder } from "./auth/record-last-use.ts";
import { createGuessThrottle } from "./auth/throttle-guessing.ts";
import { watchPartnersFile } from "./auth/watch-partners-file.ts";
import { boundConnections } from "./http/bound-connections.ts";
import { createConnections } from "./http/connections.ts";
import { createServer } from "./http/create-server.ts";
import { createPartnerLimiter } from "./limits/limit-partners.ts";
import { watchLoad } from "./limits/shed-load.ts";
import { createTurns } from "./limits/take-turns.ts";
import { freezeLimits, watchFreezes } from "./limits/watch-freezes.ts";
import { createRequestObserver } from "./log/observe-requests.ts";
import { watchQueue } from "./queue/watch-queue.ts";

const entries = {
  PORT: variables.PORT,
  HOST: variables.HOST,
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9101),
  REDIS_URL: variables.REDIS_URL,
  QUEUE_PREFIX: variables.QUEUE_PREFIX,
  PARTNERS_FILE: variables.PARTNERS_FILE,
  TRUSTED_PROXY_HOPS: variables.TRUSTED_PROXY_HOPS,
  MAX_CONNECTIONS: variables.MAX_CONNECTIONS,
  BODY_LIMIT_BYTES: variables.BODY_LIMIT_BYTES,
  MAX_BACKLOG: variables.MAX_BACKLOG,
  REDIS_MEMORY_HIGH_WATER: variables.REDIS_MEMORY_HIGH_WATER,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

/** An event loop that is behind by this much on average answers nobody in good time. */
const maxEventLoopDelayMs = 250;

/** What ingest is made of where it matters to a test that lets it stop, go wrong, or go without, at a chosen point. */
const ingestParts = { createProducer, createPartnerLimiter, watchFreezes, watchLoad };
export type IngestParts = typeof ingestParts;

/**
 * Constructs ingest and starts it. Resolves when it accepts events, or refuses them because Redis is out.
 *
 * @param parts replaces some of what ingest is made of
 * @throws StartError
 */
export async function runIngest(environment: NodeJS.ProcessEnv, parts: Partial<IngestParts> = {}): Promise<void> {
  const made = { ...ingestParts, ...parts };
  const settings = parseEnvironment(entries, environment);
  const logger = createLogger({ name: "ingest", level: settings.LOG_LEVEL });
  const metrics = createMetrics("ingest");
  const { observe, flush } = createRequestObserver(logger, metrics);
  // Before the logger's own listener, which writes the last lines.
  process.prependListener("exit", flush);
  const partners = await watchPartnersFile({ path: settings.PARTNERS_FILE, logger, metrics });
  const freezes = made.watchFreezes({ logger, metrics });
  const producer = made.createProducer({
    redisUrl: settings.REDIS_URL,
    prefix: settings.QUEUE_PREFIX,
    // The watch below says at level error that there is a problem, and when it is over.
    onError: (error) => logger.debug({ err: error }, "Redis connection failed"),
    onTimeLost: freezes.noteTimeLost,
  });
  const tokenBuckets = createTokenBuckets({
    redisUrl: settings.REDIS_URL,
    prefix: settings.QUEUE_PREFIX,
    onError: (error) => logger.debug({ err: error }, "Redis connection for rate limits failed"),
  });
  const queue = await watchQueue({ producer, logger });
  const load = await made.watchLoad({
    measureLoad: () => producer.measureLoad(),
    limits: {
      maxBacklog: settings.MAX_BACKLOG,
      memoryHighWater: settings.REDIS_MEMORY_HIGH_WATER,
      maxEventLoopDelayMs,
    },
    logger,
    metrics,
  });
  const lastUse = createLastUseRecorder({
    writeLastUses: (uses) => producer.writeLastUses(uses),
    onError: (error) => logger.debug({ err: error }, "the last use of secrets could not be written: later"),
  });
  const connections = createConnections({
    maxConnections: boundConnections(settings.MAX_CONNECTIONS, logger),
    metrics,
  });
  const app = createApp({
    partners: partners.registry,
    answerGuess: createGuessThrottle(),
    noteAuthentic: connections.noteAuthentic,
    noteUse: lastUse.note,
    isOverloaded: load.isOverloaded,
    wasFrozen: freezes.wasFrozen,
    ...made.createPartnerLimiter({
      takeTokens: tokenBuckets.take,
      processCount: tokenBuckets.processCount,
      logger,
      metrics,
    }),
    takeTurn: createTurns(),
    enqueue: (event) => queue.runOnFitRedis(() => producer.enqueue(event)),
    isQueueAvailable: () => queue.problems().length === 0,
    isShuttingDown: () => shutdown.isShuttingDown(),
    bodyLimitBytes: settings.BODY_LIMIT_BYTES,
    trustedProxyHops: settings.TRUSTED_PROXY_HOPS,
    observe,
    logger,
  });
  const { server, stop } = createServer({ handle: app.callback(), connections, observe });
  server.on("connection", freezes.noteConnection);
  const shutdown = installGracefulShutdown({
    phases: shutdownPhases(settings.SHUTDOWN_TIMEOUT_MS, {
      finishWork: stop,
      async closeConnections() {
        healthServer.close();
        partners.stop();
        queue.stop();
        load.stop();
        freezes.stop();
        await lastUse.stop();
        tokenBuckets.close();
        await producer.close();
      },
    }),
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
  });
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: () => [
      ...partners.problems(),
      ...queue.problems(),
      ...(shutdown.isShuttingDown() ? ["The process is shutting down."] : []),
    ],
    findWarnings: () => [...partners.warnings(), ...load.warnings()],
    metrics,
  });
  const variableNames = { host: "HOST", port: "PORT" };
  const { backlog } = freezeLimits;
  await listen(server, { host: settings.HOST, port: settings.PORT, backlog, variables: variableNames });
  logger.info({ version, host: settings.HOST, port: (server.address() as AddressInfo).port }, "ready");
}
