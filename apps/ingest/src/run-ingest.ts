import {
  boundConnections,
  Connections,
  countPageReads,
  createGuessThrottle,
  createLastUseRecorder,
  mayHaveBody,
  type ObservedRequest,
  PartnerFacingServer,
  PartnerLimiter,
  RequestObserver,
  servePartners,
  watchPartners,
} from "@booking-events/http";
import {
  createProducer,
  createShardedProducer,
  createStateReader,
  createTokenBuckets,
  exportQueueMetrics,
  openRecords,
  type Records,
} from "@booking-events/queue";
import {
  adminPort,
  createLogger,
  createMetrics,
  createTracing,
  exportCertificates,
  type Logger,
  listUrls,
  parseEnvironment,
  type Registry,
  redisVariables,
  refuseTracingAgents,
  toRedisServers,
  variables,
} from "@booking-events/runtime";
import { createApp, kindOfPath } from "./app.ts";
import { findBacklogWarnings } from "./freezes/find-backlog-warnings.ts";
import { FreezeWatch, freezeLimits } from "./freezes/watch-freezes.ts";
import { watchLoad } from "./load/shed-load.ts";
import { Turns } from "./load/take-turns.ts";
import { ConvertedMidnights } from "./observe/converted-midnights.ts";
import { createLineCounter } from "./observe/count-lines.ts";
import { createUnknownFieldCounter } from "./observe/count-unknown-fields.ts";
import { createViolationCounter } from "./observe/count-violations.ts";
import { exportQuotas } from "./observe/export-quotas.ts";
import { exportSecretExpiry } from "./observe/export-secret-expiry.ts";
import { exportTestPartners } from "./observe/export-test-partners.ts";
import { AcceptedRecord } from "./observe/keep-accepted.ts";
import { createAnswerRecorder } from "./observe/record-answers.ts";
import { createRefusalRecorder } from "./observe/record-refusals.ts";
import { createWarningRecorder } from "./observe/record-warnings.ts";
import { loadPages } from "./pages/pages.ts";
import { TestMarks } from "./queue/keep-test-marks.ts";
import { exportAvailability, measureEnqueuing } from "./queue/queue-metrics.ts";
import { watchShards } from "./queue/watch-shards.ts";

const entries = {
  PORT: variables.PORT,
  HOST: variables.HOST,
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9101),
  ...redisVariables,
  REDIS_REPLICAS_TO_CONFIRM: variables.REDIS_REPLICAS_TO_CONFIRM,
  QUEUE_PREFIX: variables.QUEUE_PREFIX,
  QUEUE_SHARDS: variables.QUEUE_SHARDS,
  PARTNERS_FILE: variables.PARTNERS_FILE,
  ACCEPTED_FOLDER: variables.ACCEPTED_FOLDER,
  TRUSTED_PROXY_HOPS: variables.TRUSTED_PROXY_HOPS,
  LOOKUP_URL: variables.LOOKUP_URL,
  MAX_CONNECTIONS: variables.MAX_CONNECTIONS,
  KEEP_ALIVE_TIMEOUT_MS: variables.KEEP_ALIVE_TIMEOUT_MS,
  BODY_LIMIT_BYTES: variables.BODY_LIMIT_BYTES,
  MAX_BACKLOG: variables.MAX_BACKLOG,
  REDIS_MEMORY_HIGH_WATER: variables.REDIS_MEMORY_HIGH_WATER,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_DELAY_MS: variables.SHUTDOWN_DELAY_MS,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

/** With a longer median delay of the event loop, nobody is answered in time. */
const maxEventLoopDelayMs = 250;

/** The parts of ingest that a test may replace, to make one stop or fail at a chosen point. */
export interface IngestParts {
  createProducer: typeof createProducer;
  watchFreezes: (options: { logger: Logger; metrics: Registry }) => PublicPart<FreezeWatch>;
}

type PublicPart<Class> = Pick<Class, keyof Class>;

const ingestParts: IngestParts = {
  createProducer,
  watchFreezes: (options) => new FreezeWatch(options),
};

/**
 * Constructs ingest and starts it. Resolves when it accepts events, or refuses them because Redis is unavailable.
 *
 * @param replacedParts replaces some parts of ingest in tests
 * @throws StartError
 */
export async function runIngest(
  environment: NodeJS.ProcessEnv,
  replacedParts: Partial<IngestParts> = {},
): Promise<void> {
  const context = await createContext(environment, { ...ingestParts, ...replacedParts });
  const services = await startServices(context);
  const { partners, testMarks, queue, load } = services;
  await servePartners({
    ...context,
    createServer: (isStopping) => createIngestServer(context, services, isStopping),
    closeConnections: () => Promise.all([stopServices(services), context.tracing?.shutdown()]),
    findProblems: () => [...partners.problems(), ...findQueueProblems(services)],
    findWarnings: () => [
      ...partners.warnings(),
      ...testMarks.warnings(),
      ...queue.warnings(),
      ...load.warnings(),
      ...findBacklogWarnings(),
    ],
    backlog: freezeLimits.backlog,
  });
}

function findQueueProblems({ queue, partners }: Services): string[] {
  const problems = queue.problems();
  return problems.length > 0 ? problems : partners.revocationProblems();
}

type Context = Awaited<ReturnType<typeof createContext>>;
type Services = Awaited<ReturnType<typeof startServices>>;

async function createContext(environment: NodeJS.ProcessEnv, parts: IngestParts) {
  refuseTracingAgents(environment);
  const settings = parseEnvironment(entries, environment);
  const redis = { redisServers: toRedisServers(settings), prefix: settings.QUEUE_PREFIX };
  const logger = createLogger({ name: "ingest", level: settings.LOG_LEVEL });
  const metrics = createMetrics("ingest");
  const observer = new RequestObserver("ingest", logger, metrics);
  const tracing = await createTracing({
    serviceName: "booking-events-ingest",
    environment,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
  });
  // Runs before the logger's own listener, which writes the last lines.
  process.prependListener("exit", () => observer.flush());
  return { settings, redis, logger, metrics, observer, tracing, parts };
}

/** Starts everything that keeps a connection, a timer or a watch. */
async function startServices(context: Context) {
  const { settings, redis, logger, metrics, observer, parts } = context;
  const records = openRecords({
    ...redis,
    connectionName: "booking-events-ingest",
    onError: (error) => logger.debug({ err: error }, "Redis connection for records failed"),
  });
  const convertedMidnights = new ConvertedMidnights();
  const batchLines = createLineCounter(metrics);
  const partners = await watchPartners({
    app: "ingest",
    path: settings.PARTNERS_FILE,
    readRevocations: records.readRevocations,
    writeRevocations: records.writeRevocations,
    onLoaded(known) {
      observer.expectPartners(known);
      batchLines.expectPartners(known);
      convertedMidnights.keep(known);
    },
    logger,
    metrics,
  });
  exportSecretExpiry(metrics, partners.registry);
  exportTestPartners(metrics, partners.registry);
  const freezes = parts.watchFreezes({ logger, metrics });
  const { producer, queue, load } = await startQueue(context, (lostMs) => freezes.recordLostTime(lostMs));
  const tokenBuckets = createTokenBuckets({
    ...redis,
    onError: (error) => logger.debug({ err: error }, "Redis connection for rate limits failed"),
  });
  const limiter = new PartnerLimiter({ app: "ingest", tokenBuckets, logger, metrics });
  exportQuotas(limiter, metrics);
  const certificates = new AbortController();
  exportCertificates(metrics, { redis: listUrls(redis.redisServers) }, certificates.signal);
  const recorders = startRecorders(context, records);
  return {
    partners,
    freezes,
    producer,
    queue,
    load,
    tokenBuckets,
    limiter,
    certificates,
    recorders,
    convertedMidnights,
    batchLines,
    testMarks: new TestMarks({
      claim: records.claimTestMark,
      isTest: (partner) => partners.registry().isTest(partner),
      logger,
    }),
  };
}

async function startQueue({ settings, redis, logger, metrics, parts }: Context, onTimeLost: (lostMs: number) => void) {
  const producer = createShardedProducer({
    ...redis,
    shardCount: settings.QUEUE_SHARDS,
    createProducer: parts.createProducer,
    replicasToConfirm: settings.REDIS_REPLICAS_TO_CONFIRM,
    // The watch of the queue logs problems and their end at a higher level.
    onError: (error) => logger.debug({ err: error }, "Redis connection failed"),
    onTimeLost,
  });
  const queue = await watchShards({ producers: producer.shards, logger });
  exportAvailability(queue, metrics);
  exportQueueMetrics(
    metrics,
    createStateReader(() => producer.shards.map(({ readState }, shard) => [shard, readState])),
  );
  const load = await watchLoad({
    measureLoads: producer.shards.map(({ measureLoad }) => measureLoad),
    limits: {
      maxBacklog: settings.MAX_BACKLOG,
      memoryHighWater: settings.REDIS_MEMORY_HIGH_WATER,
      maxEventLoopDelayMs,
    },
    logger,
    metrics,
  });
  return { producer, queue, load };
}

function startRecorders({ settings, logger, metrics }: Context, records: Records) {
  const lastUse = createLastUseRecorder({
    write: records.writeLastUses,
    onError: (error) => logger.debug({ err: error }, "writing the last use of secrets failed and will be retried"),
  });
  const refusals = createRefusalRecorder({
    write: records.writeRefusals,
    onError: (error) => logger.debug({ err: error }, "recording refusals failed"),
    metrics,
  });
  const warnings = createWarningRecorder({
    write: (counts) => records.addFieldCounts("warnings", counts),
    onError: (error) => logger.debug({ err: error }, "counting warnings in Redis failed"),
    metrics,
  });
  const answers = createAnswerRecorder({
    writeAnswers: records.addAnswerCounts,
    writeViolations: (counts) => records.addFieldCounts("violations", counts),
    onError: (error) => logger.debug({ err: error }, "counting answers in Redis failed"),
  });
  const folder = settings.ACCEPTED_FOLDER;
  const accepted =
    folder === undefined
      ? undefined
      : new AcceptedRecord(folder, (error) => logger.error({ err: error }, "ids of accepted events could not be kept"));
  return {
    lastUse,
    refusals,
    warnings,
    answers,
    accepted,
    async stop() {
      await Promise.all([lastUse.stop(), refusals.stop(), warnings.stop(), answers.stop(), accepted?.stop()]);
      records.close();
    },
  };
}

async function stopServices(services: Services): Promise<void> {
  const { partners, freezes, producer, queue, load, tokenBuckets, limiter, certificates, recorders } = services;
  partners.stop();
  queue.stop();
  certificates.abort();
  load.stop();
  freezes.stop();
  await Promise.all([recorders.stop(), limiter.stop()]);
  tokenBuckets.close();
  await producer.close();
}

function createIngestServer(context: Context, services: Services, isShuttingDown: () => boolean): PartnerFacingServer {
  const { settings, logger, metrics } = context;
  const { partners, testMarks, freezes, queue, load, limiter, convertedMidnights, recorders } = services;
  const { observe, observeLine } = createObservers(context, services);
  const connections = new Connections({
    app: "ingest",
    maxConnections: boundConnections({ wanted: settings.MAX_CONNECTIONS, shards: settings.QUEUE_SHARDS, logger }),
    metrics,
    isAccepting: () => freezes.isAccepting(),
  });
  const app = createApp({
    partners: partners.registry,
    answerGuess: createGuessThrottle(),
    isClockWrong: queue.isHostClockWrong,
    markAuthentic: (socket, partner) => connections.markAuthentic(socket, partner),
    recordUse: recorders.lastUse.record,
    isOverloaded: () => load.isOverloaded(),
    wasFrozen: (socket) => freezes.wasFrozen(socket),
    markPaced: (response) => connections.markPaced(response),
    observeLine,
    isLate: (socket) => freezes.wasFrozen(socket) || connections.isLate(socket),
    limiter,
    turns: new Turns({ isAccepting: () => freezes.isAccepting() }),
    enqueue: testMarks.guard(measureEnqueuing(queue.enqueue, metrics)),
    countUnknownFields: createUnknownFieldCounter(metrics),
    convertedMidnights,
    recordWarnings: recorders.warnings.record,
    // Until Redis has been read, a revoked secret may look valid.
    isQueueAvailable: () => queue.isAvailable() && partners.areRevocationsKnown(),
    isShuttingDown,
    pages: loadPages(settings.LOOKUP_URL),
    lookupUrl: settings.LOOKUP_URL,
    bodyLimitBytes: settings.BODY_LIMIT_BYTES,
    trustedProxyHops: settings.TRUSTED_PROXY_HOPS,
    observe,
    tracing: context.tracing,
    logger,
  });
  const ingestServer = new PartnerFacingServer({
    handle: app.callback(),
    mayHaveBody: (req) => mayHaveBody(partners.registry(), req, kindOfPath),
    connections,
    keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS,
    observe,
  });
  // First, because it closes connections of this process to itself.
  ingestServer.server.prependListener("connection", (socket) => freezes.trackConnection(socket));
  freezes.begin();
  return ingestServer;
}

/** Returns what is told of each request, and of each line of a batch. */
function createObservers({ observer, metrics }: Context, { partners, recorders, batchLines }: Services) {
  const countViolations = createViolationCounter(metrics);
  const record = (answered: ObservedRequest) => {
    countViolations(answered);
    recorders.refusals.record(answered);
    recorders.answers.record(answered);
    // Nobody asks a test partner for what Redis has lost.
    if (!partners.registry().isTest(answered.partner ?? "")) recorders.accepted?.record(answered);
  };
  const observe = countPageReads(
    "ingest",
    (request) => {
      observer.observe(request);
      // The lines of a batch were recorded one by one.
      if (request.lines === undefined) record(request);
    },
    metrics,
  );
  function observeLine(line: ObservedRequest): void {
    batchLines.count(line);
    record(line);
  }
  return { observe, observeLine };
}
