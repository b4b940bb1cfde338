import { Deliverer } from "@booking-events/feed";
import {
  adminPort,
  adviseOnDatabase,
  createLogger,
  createMetrics,
  createServerCheck,
  describeError,
  exportCertificates,
  installGracefulShutdown,
  keepDoing,
  listen,
  parseEnvironment,
  refuseTracingAgents,
  servicePort,
  startHealthServer,
  variables,
  version,
} from "@booking-events/runtime";
import {
  createPool,
  listWebhookSubscriptions,
  pauseFailingSubscriptions,
  pauseSubscription,
} from "@booking-events/store";
import type { Pool } from "pg";
import { createPull } from "./pull/create-pull.ts";
import { createPullServer, stopPullServer } from "./pull-server.ts";
import { Consumers } from "./subscriptions/consumers.ts";
import { watchSubscriptions } from "./subscriptions/watch-subscriptions.ts";
import { WebhooksMetrics } from "./webhooks-metrics.ts";

const entries = {
  PORT: servicePort(8083),
  HOST: variables.HOST,
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9104),
  DATABASE_URL: variables.DATABASE_URL,
  DATABASE_SCHEMA: variables.DATABASE_SCHEMA,
  WEBHOOKS_ALLOW_PRIVATE: variables.WEBHOOKS_ALLOW_PRIVATE,
  WEBHOOKS_PROXY_URL: variables.WEBHOOKS_PROXY_URL,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_DELAY_MS: variables.SHUTDOWN_DELAY_MS,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

/** For the subscriptions and health. Deliveries have their own. */
const maxConnections = 3;
/** For those who pull, so that nothing else waits for them. Two snapshots hold one each for as long as they take. */
const maxPullConnections = 6;
/** Posts write nothing in a transaction of their own. */
const maxHandlerConnections = 1;
const failingIntervalMs = 60_000;
/** The posts of a subscription have all failed for so long when it is paused. */
const maxFailingDays = 5;
/** In `subscriptions.paused_by`. */
const pausedBy = "webhooks";

type Context = ReturnType<typeof createContext>;
type Parts = ReturnType<typeof createParts>;

/**
 * Constructs the process that posts changes to subscribers and answers those who pull, and starts it. It starts without
 * PostgreSQL too, and waits for it.
 *
 * @throws StartError
 */
export async function runWebhooks(environment: NodeJS.ProcessEnv): Promise<void> {
  const context = createContext(environment);
  const { settings, logger, registry, stopping } = context;
  const parts = createParts(context);
  const server = createPullServer(parts.pull.answer, logger);
  await listen(server, { host: settings.HOST, port: settings.PORT });
  const delivering = parts.deliverer.run(stopping.signal);
  const shutdown = installGracefulShutdown({
    async finishWork() {
      stopping.abort();
      await Promise.all([delivering, stopPullServer(server)]);
    },
    async closeConnections() {
      healthServer.close();
      await parts.pull.close();
      await Promise.all([parts.database.end(), parts.pullDatabase.end()]);
    },
    delayMs: settings.SHUTDOWN_DELAY_MS,
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
  });
  delivering.catch((error: unknown) => shutdown.fail("stopping: changes cannot be delivered", error));
  watch(context, parts);
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: async () => [
      ...(await parts.findProblems()),
      ...(shutdown.isShuttingDown() ? ["The process is shutting down."] : []),
    ],
    metrics: registry,
  });
  logger.info({ version, host: settings.HOST, port: settings.PORT }, "ready");
}

function createContext(environment: NodeJS.ProcessEnv) {
  refuseTracingAgents(environment);
  const settings = parseEnvironment(entries, environment);
  const logger = createLogger({ name: "webhooks", level: settings.LOG_LEVEL });
  const registry = createMetrics("webhooks");
  /** Aborts when the process has been told to stop, and takes on no more. */
  const stopping = new AbortController();
  exportCertificates(registry, { postgresql: [settings.DATABASE_URL] }, stopping.signal);
  return { settings, logger, registry, stopping };
}

function createParts({ settings, logger, registry, stopping }: Context) {
  const { DATABASE_URL: databaseUrl, DATABASE_SCHEMA: schema } = settings;
  const open = (connections: number) =>
    createPool({
      databaseUrl,
      schema,
      applicationName: "booking-events-webhooks",
      maxConnections: connections,
      onError: (error) => logger.debug({ err: error }, "lost a connection to PostgreSQL"),
    });
  const [database, pullDatabase] = [open(maxConnections), open(maxPullConnections)];
  const metrics: WebhooksMetrics = new WebhooksMetrics(registry, () => consumers.count);
  const deliverer = new Deliverer({
    database: databaseUrl,
    schema,
    maxConnections: maxHandlerConnections,
    logger,
    observe: (event) => metrics.observeDelivery(event),
  });
  const consumers = new Consumers({
    deliveries: deliverer,
    network: { allowPrivate: settings.WEBHOOKS_ALLOW_PRIVATE, proxyUrl: settings.WEBHOOKS_PROXY_URL },
    pause: (name, reason) => pauseSubscription(database, name, { reason, by: pausedBy }),
    forget: (name) => metrics.forget(name),
    logger,
  });
  const pull = createPull({
    ...{ database: pullDatabase, databaseUrl, schema, logger },
    observe: (request) => metrics.observePull(request),
    isStopping: () => stopping.signal.aborted,
  });
  return { database, pullDatabase, deliverer, consumers, pull, findProblems: createProblemFinder(database) };
}

/** Follows the subscriptions, and pauses those that take nothing any more, until the process stops. */
function watch({ settings, logger, stopping: { signal } }: Context, { database, consumers, pull }: Parts): void {
  const { DATABASE_URL: databaseUrl, DATABASE_SCHEMA: schema } = settings;
  const look = async () => {
    pull.forgetTokens();
    try {
      await consumers.follow(await listWebhookSubscriptions(database));
    } catch (error) {
      logger.warn({ err: error }, "the subscriptions could not be read or paused: trying again");
    }
  };
  void watchSubscriptions({ databaseUrl, schema, look, logger, signal });
  keepDoing(
    async () => {
      const reason = `All posts have failed for ${maxFailingDays} days.`;
      const paused = await pauseFailingSubscriptions(database, { days: maxFailingDays, reason, by: pausedBy });
      for (const name of paused) logger.error({ subscription: name, reason }, "paused the subscription");
    },
    failingIntervalMs,
    signal,
  );
}

function createProblemFinder(database: Pool): () => Promise<string[]> {
  const check = createServerCheck(
    () => database.query("select from subscriptions limit 0"),
    (error) => describeError(error).code ?? describeError(error).type,
  );
  return async () => {
    const code = await check();
    return code === null ? [] : [`PostgreSQL cannot be read (${code}). ${adviseOnDatabase(code)}`];
  };
}
