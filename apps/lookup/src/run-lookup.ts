import {
  boundConnections,
  Connections,
  countPageReads,
  createGuessThrottle,
  createLastUseRecorder,
  mayHaveBody,
  PartnerFacingServer,
  PartnerLimiter,
  RequestObserver,
  servePartners,
  watchPartners,
} from "@booking-events/http";
import { createQueueReader, createTokenBuckets, openRecords, type QueueReader } from "@booking-events/queue";
import {
  adminPort,
  adviseOnDatabase,
  ClockWatch,
  createLogger,
  createMetrics,
  createServerCheck,
  describeError,
  exportCertificates,
  keepDoing,
  listUrls,
  parseEnvironment,
  redisVariables,
  refuseTracingAgents,
  toRedisServers,
  tryFor,
  variables,
} from "@booking-events/runtime";
import {
  createPool,
  type DigestKey,
  findCollationWarnings,
  probeReads,
  readDatabaseTimes,
  readDigestKey,
  testSchemaOf,
} from "@booking-events/store";
import type { Pool } from "pg";
import { ActivityReader } from "./activity/read-activity.ts";
import { createApp, kindOfPath } from "./app.ts";
import { loadActivityPage } from "./pages/load-activity-page.ts";
import { openPartnerData } from "./partner-data.ts";
import { ListsUnderWay } from "./reconcile/lists-under-way.ts";
import { DatabaseWatch } from "./watch-database.ts";

const entries = {
  PORT: variables.PORT,
  HOST: variables.HOST,
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9103),
  ...redisVariables,
  DATABASE_URL: variables.DATABASE_URL,
  DATABASE_SCHEMA: variables.DATABASE_SCHEMA,
  DIGEST_KEY: variables.DIGEST_KEY,
  LOOKUP_VALUES: variables.LOOKUP_VALUES,
  QUEUE_PREFIX: variables.QUEUE_PREFIX,
  QUEUE_SHARDS: variables.QUEUE_SHARDS,
  PARTNERS_FILE: variables.PARTNERS_FILE,
  TRUSTED_PROXY_HOPS: variables.TRUSTED_PROXY_HOPS,
  DOCS_ORIGIN: variables.DOCS_ORIGIN,
  MAX_CONNECTIONS: variables.MAX_CONNECTIONS,
  KEEP_ALIVE_TIMEOUT_MS: variables.KEEP_ALIVE_TIMEOUT_MS,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_DELAY_MS: variables.SHUTDOWN_DELAY_MS,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

const maxDatabaseConnections = 4;
/** Pages of lists that are compared at once. */
const maxListConnections = 2;
/** Lists and other questions of test partners. */
const maxTestConnections = maxListConnections + 2;
/** Comparing a page of references that PostgreSQL must read from a slow disk. */
const comparisonTimeoutMs = 10_000;
/** In an outage, partners get an answer within 2 s. Redis, which is asked first, may take most of the first one. */
const databaseDeadlineMs = 1_000;
const clockIntervalMs = 5_000;
const firstLookMs = 1_000;
/** It changes only with PostgreSQL's host or image. */
const collationIntervalMs = 60_000;

/**
 * Constructs lookup and starts it. Resolves when it answers questions, or refuses them because Redis or PostgreSQL is
 * unavailable.
 *
 * @throws StartError
 */
export async function runLookup(environment: NodeJS.ProcessEnv): Promise<void> {
  const context = createContext(environment);
  const services = await startServices(context);
  await servePartners({
    ...context,
    createServer: (isStopping) => createLookupServer(context, services, isStopping),
    closeConnections: () => stopServices(services),
    findProblems: () => findProblems(services),
    findWarnings: () => [...services.partners.warnings(), ...services.collations.warnings],
  });
}

type Context = ReturnType<typeof createContext>;
type Services = Awaited<ReturnType<typeof startServices>>;

function createContext(environment: NodeJS.ProcessEnv) {
  refuseTracingAgents(environment);
  const settings = parseEnvironment(entries, environment);
  const logger = createLogger({ name: "lookup", level: settings.LOG_LEVEL });
  const metrics = createMetrics("lookup");
  const observer = new RequestObserver("lookup", logger, metrics);
  // Runs before the logger's own listener, which writes the last lines.
  process.prependListener("exit", () => observer.flush());
  const observe = countPageReads("lookup", (request) => observer.observe(request), metrics);
  return { settings, logger, metrics, observe };
}

/** Starts everything that keeps a connection, a timer or a watch. */
async function startServices(context: Context) {
  const { settings, logger, metrics } = context;
  const redis = { redisServers: toRedisServers(settings), prefix: settings.QUEUE_PREFIX };
  const records = openRecords({
    ...redis,
    connectionName: "booking-events-lookup",
    onError: (error) => logger.debug({ err: error }, "Redis connection for records failed"),
  });
  const partners = await watchPartners({
    app: "lookup",
    path: settings.PARTNERS_FILE,
    readRevocations: records.readRevocations,
    logger,
    metrics,
  });
  const queue = createQueueReader({
    ...redis,
    shardCount: settings.QUEUE_SHARDS,
    onError: (error) => logger.debug({ err: error }, "Redis connection failed"),
  });
  const tokenBuckets = createTokenBuckets({
    ...redis,
    group: "lookups",
    onError: (error) => logger.debug({ err: error }, "Redis connection for rate limits failed"),
  });
  const databases = openDatabases(context);
  const lastUse = createLastUseRecorder({
    write: records.writeLastUses,
    onError: (error) => logger.debug({ err: error }, "writing the last use of secrets failed and will be retried"),
  });
  const digestKey = createDigestKeyReader(databases.database, settings.DIGEST_KEY);
  const isTest = (partner: string) => partners.registry().isTest(partner);
  const data = openPartnerData({ ...databases, isTest, databaseDeadlineMs, maxListConnections, digestKey });
  const watches = await startWatches(context, queue, databases.database);
  const checkDatabase = createServerCheck(
    // Without the right key, lookup would take erased bookings for missing ones.
    () => Promise.all([probeReads(databases.database), digestKey()]),
    (error) => describeError(error).code ?? describeError(error).type,
  );
  const checkRedis = createServerCheck(queue.readDatabase, () => "no answer" as const);
  const checks = { checkDatabase, checkRedis };
  return { partners, queue, tokenBuckets, records, lastUse, data, ...databases, ...watches, ...checks };
}

function openDatabases({ settings, logger }: Context) {
  const { DATABASE_SCHEMA } = settings;
  const open = (maxConnections: number, statementTimeoutMs: number, schema = DATABASE_SCHEMA) =>
    createPool({
      databaseUrl: settings.DATABASE_URL,
      schema,
      applicationName: "booking-events-lookup",
      maxConnections,
      onError: (error) => logger.debug({ err: error }, "lost a connection to PostgreSQL"),
      limits: { connectTimeoutMs: databaseDeadlineMs, statementTimeoutMs, isReadOnly: true },
    });
  return {
    database: open(maxDatabaseConnections, databaseDeadlineMs),
    // Lists have connections of their own, so receipts never wait for them.
    listDatabase: open(maxListConnections, comparisonTimeoutMs),
    // While no test partner asks, it has no connections.
    testDatabase: open(maxTestConnections, comparisonTimeoutMs, testSchemaOf(DATABASE_SCHEMA)),
  };
}

async function startWatches({ settings, logger, metrics }: Context, queue: QueueReader, database: Pool) {
  const watching = new AbortController();
  const { signal } = watching;
  const databaseWatch = new DatabaseWatch({ queue, database, logger });
  await databaseWatch.start(signal);
  exportCertificates(
    metrics,
    { redis: listUrls(toRedisServers(settings)), postgresql: [settings.DATABASE_URL] },
    signal,
  );
  const clocks = new ClockWatch({
    readRedis: queue.readTimes,
    readDatabase: () => readDatabaseTimes(database),
    metrics,
    logger,
  });
  // By a wrong clock, a secret has expired too early or too late. The first connection to Redis takes a while.
  await tryFor(firstLookMs, () => clocks.look(), signal);
  keepDoing(() => clocks.look(), clockIntervalMs, signal);
  const collations: { warnings: string[] } = { warnings: [] };
  keepDoing(
    async () => {
      collations.warnings = await findCollationWarnings(database);
    },
    collationIntervalMs,
    signal,
  );
  return { watching, databaseWatch, clocks, collations };
}

async function stopServices(services: Services): Promise<void> {
  const { partners, queue, watching, tokenBuckets, database, listDatabase, testDatabase, records, lastUse } = services;
  partners.stop();
  watching.abort();
  await lastUse.stop();
  records.close();
  tokenBuckets.close();
  queue.close();
  await Promise.all([database.end(), listDatabase.end(), testDatabase.end()]);
}

function createLookupServer(
  { settings, logger, metrics, observe }: Context,
  { partners, queue, tokenBuckets, records, data, databaseWatch, clocks, lastUse }: Services,
  isShuttingDown: () => boolean,
): PartnerFacingServer {
  const connections = new Connections({
    app: "lookup",
    maxConnections: boundConnections({ wanted: settings.MAX_CONNECTIONS, shards: settings.QUEUE_SHARDS, logger }),
    metrics,
  });
  const app = createApp({
    partners: partners.registry,
    answerGuess: createGuessThrottle(),
    isClockWrong: () => clocks.differsFromServers(),
    markAuthentic: (socket, partner) => connections.markAuthentic(socket, partner),
    markPaced: (response) => connections.markPaced(response),
    recordUse: lastUse.record,
    isShuttingDown,
    // Questions change nothing, so an answer that nobody waits for does no harm.
    isOverloaded: () => false,
    isLate: () => false,
    limiter: new PartnerLimiter({ app: "lookup", tokenBuckets, logger, metrics }),
    findWaiting: queue.findEvent,
    data,
    activity: new ActivityReader({
      data,
      readRecords: records.readOfPartner,
      findWaiting: queue.findWaiting,
      look: tokenBuckets.look,
    }),
    lists: new ListsUnderWay(),
    pages: loadActivityPage(settings.DOCS_ORIGIN),
    returnsReadings: settings.LOOKUP_VALUES,
    // Until Redis has been read, a revoked secret may look valid.
    isUnavailable: () => databaseWatch.problem !== null || !partners.areRevocationsKnown(),
    trustedProxyHops: settings.TRUSTED_PROXY_HOPS,
    docsOrigin: settings.DOCS_ORIGIN,
    observe,
    logger,
  });
  return new PartnerFacingServer({
    handle: app.callback(),
    mayHaveBody: (req) => mayHaveBody(partners.registry(), req, kindOfPath),
    connections,
    keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS,
    observe,
  });
}

/** The key is read when it is first needed, since PostgreSQL may be down before. */
function createDigestKeyReader(database: Pool, secret: string | undefined): () => Promise<DigestKey> {
  let key: DigestKey | undefined;
  return async () => {
    key ??= await readDigestKey(database, secret);
    return key;
  };
}

async function findProblems(services: Services): Promise<string[]> {
  const { partners, queue, databaseWatch, clocks, checkDatabase, checkRedis } = services;
  const [databaseProblem, redis] = await Promise.all([checkDatabase(), checkRedis()]);
  return [
    ...partners.problems(),
    ...(databaseWatch.problem === null ? [] : [databaseWatch.problem]),
    ...clocks.problems(),
    ...(redis === null ? partners.revocationProblems() : [queue.describeOutage()]),
    ...(databaseProblem === null
      ? []
      : [
          databaseProblem === "DigestKeyError"
            ? "PostgreSQL cannot be read, since DIGEST_KEY is not the worker's."
            : `PostgreSQL cannot be read (${databaseProblem}). ${adviseOnDatabase(databaseProblem)}`,
        ]),
  ];
}
