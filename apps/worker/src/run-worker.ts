import {
  createConsumer,
  createStateReader,
  exportQueueMetrics,
  fetchIntervalMs,
  locateShard,
  ReleaseDelivery,
} from "@booking-events/queue";
import {
  adminPort,
  ClockWatch,
  createLogger,
  createMetrics,
  createTracing,
  exportCertificates,
  type GracefulShutdown,
  installGracefulShutdown,
  keepDoing,
  type Logger,
  listUrls,
  parseEnvironment,
  type Registry,
  redisVariables,
  startHealthServer,
  type Tracing,
  toRedisServers,
  tryFor,
  variables,
  version,
} from "@booking-events/runtime";
import {
  createPool,
  type DatabaseTimes,
  estimateDefaultPartition,
  findCollationWarnings,
  findDurabilityProblems,
  findStandbyProblems,
  groupDeadLetters,
  listFeedReaders,
  type Maintained,
  maintain,
  probeWrites,
  readDatabaseIdentity,
  readDatabaseTimes,
  recordWorkerRules,
  testRetention,
  testSchemaOf,
  type WorkerRules,
} from "@booking-events/store";
import type { Pool } from "pg";
import { applyEvents } from "./apply/apply-events.ts";
import { Batches } from "./batches/apply-in-batches.ts";
import { Transactions } from "./batches/transactions.ts";
import { DeadLetters } from "./deliver/dead-letters.ts";
import type { Worker } from "./deliver/process-delivery.ts";
import { letterSweepIntervalMs, sweepDeadLetters } from "./deliver/sweep-dead-letters.ts";
import { maintainRegularly } from "./maintain-regularly.ts";
import { Migration } from "./migrate-at-start.ts";
import { OutageGate } from "./outages/wait-out-outage.ts";
import { ShardService, shardIntervalMs } from "./shards/serve-shards.ts";
import { QueueWatch, recordIntervalMs } from "./shards/watch-queue.ts";
import { WorkerShard } from "./shards/worker-shard.ts";
import { DatabaseHealth } from "./watch/database-health.ts";
import { findProblems, findShardWarnings, isAnyConnected } from "./watch/find-problems.ts";
import { createMaintenanceMetrics } from "./watch/maintenance-metrics.ts";
import { ReportedProblems } from "./watch/reported-problems.ts";
import { ArrivalsWatch, arrivalsIntervalMs } from "./watch/watch-arrivals.ts";
import { LaterVersions } from "./watch/watch-later-versions.ts";
import { createWorkerMetrics, exportWorkerState, maxCodes, maxFeedReaders } from "./watch/worker-metrics.ts";

const entries = {
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9102),
  ...redisVariables,
  DATABASE_URL: variables.DATABASE_URL,
  DATABASE_STANDBYS_TO_CONFIRM: variables.DATABASE_STANDBYS_TO_CONFIRM,
  DATABASE_SCHEMA: variables.DATABASE_SCHEMA,
  QUEUE_PREFIX: variables.QUEUE_PREFIX,
  QUEUE_SHARDS: variables.QUEUE_SHARDS,
  CONCURRENCY: variables.CONCURRENCY,
  BATCH_SIZE: variables.BATCH_SIZE,
  DUPLICATE_WINDOW_HOURS: variables.DUPLICATE_WINDOW_HOURS,
  RETENTION_DAYS: variables.RETENTION_DAYS,
  DELETED_RETENTION_DAYS: variables.DELETED_RETENTION_DAYS,
  DEAD_LETTER_RETENTION_DAYS: variables.DEAD_LETTER_RETENTION_DAYS,
  DIGEST_KEY: variables.DIGEST_KEY,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

const millisecondsPerHour = 60 * 60 * 1_000;
/** While one batch waits for its commit, the next one's queries run. */
const maxConcurrentBatches = 2;
/**
 * If each event were applied as soon as it came, PostgreSQL would spend 1.6 times as much CPU time at 120 events/s per
 * worker. After a fetch, the events of all shards have this long to come: then one batch takes them all.
 */
const batchInterval = { lengthMs: fetchIntervalMs, offsetMs: 3 };
/**
 * For the batches, a group apart from them, two dead letters, and two of all else: maintenance, which may take minutes,
 * and, each for a moment, a probe, the sweeps, the health check, the watches and scrapes. Before that, the migration has
 * one of its own.
 */
const maxConnections = maxConcurrentBatches + 5;
/** Test partners send little. Their batches, dead letters and maintenance wait for each other. */
const maxTestConnections = 3;
/**
 * With these limits, a batch of the worst events that ingest accepts costs the worker and PostgreSQL about as much as a
 * batch of ordinary ones. An ordinary event has a thousand characters and 40 values.
 */
const maxCharactersInBatch = 4 * 1_024 * 1_024;
const maxJsonValuesInBatch = 100_000;
/** For the text of the events that the worker holds: 3,000 with 11,000 characters each, or 512 of the largest. */
const maxHeldBytes = 64 * 1_024 * 1_024;
/**
 * For all events that are applied apart from the batches at the same time. They hold places in the worker that events in
 * the queue wait for.
 */
const maxAsideMs = 5_000;
const durabilityIntervalMs = 5_000;
const clockIntervalMs = 5_000;
/** Without Redis, there is nothing to take. */
const firstLookMs = 1_000;
/** It changes only with PostgreSQL's host or image. */
const collationIntervalMs = 60_000;

/** The parts of a worker that a test replaces, to stop the worker or let it fail at a chosen point. */
const workerParts = { applyEvents, createConsumer, createPool };
export type WorkerParts = typeof workerParts;

interface Context {
  settings: ReturnType<typeof readSettings>;
  parts: WorkerParts;
  logger: Logger;
  registry: Registry;
  tracing: Tracing | undefined;
  /** Aborts with a {@link ReleaseDelivery} when the worker stops. */
  signal: AbortSignal;
}

/**
 * Builds the worker and starts it. Resolves when the worker takes events, or when it was told to stop before that. What
 * then happens to each event stands in {@link processDelivery}.
 *
 * @param parts replaces parts of the worker
 * @throws StartError
 */
export async function runWorker(environment: NodeJS.ProcessEnv, parts: Partial<WorkerParts> = {}): Promise<void> {
  const settings = readSettings(environment);
  const stopping = new AbortController();
  const { signal } = stopping;
  const logger = createLogger({ name: "worker", level: settings.LOG_LEVEL });
  const tracing = await createTracing({
    serviceName: "booking-events-worker",
    environment,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
  });
  const registry = createMetrics("worker");
  const context: Context = { settings, parts: { ...workerParts, ...parts }, logger, registry, tracing, signal };
  const urls = { redis: listUrls(toRedisServers(settings)), postgresql: settings.DATABASE_URL };
  exportCertificates(registry, urls, signal);

  const database = createDatabase(context);
  const worker = createWorker(context, database);
  const queue = createQueue(context, database, worker);
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: () => findProblems({ ...queue, shards: queue.shards.current() }, database, signal),
    findWarnings: () => [
      ...worker.laterVersions.findWarnings(),
      ...queue.watch.warnings,
      ...database.collations.current,
      ...findShardWarnings(queue.shards.current()),
    ],
    metrics: registry,
  });
  const shutdown = installGracefulShutdown({
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
    async finishWork() {
      stopping.abort(new ReleaseDelivery("The worker is stopping."));
      await queue.shards.drain();
    },
    async closeConnections() {
      healthServer.close();
      await Promise.all([queue.shards.close(), database.pool.end(), database.testPool.end(), tracing?.shutdown()]);
    },
  });
  await start(context, database, worker, queue, shutdown);
}

function readSettings(environment: NodeJS.ProcessEnv) {
  return parseEnvironment(entries, environment);
}

type Database = ReturnType<typeof createDatabase>;
type Queue = ReturnType<typeof createQueue>;

function createDatabase({ settings, parts, logger, registry, signal }: Context) {
  const open = (schema: string, maxConnections: number) =>
    parts.createPool({
      databaseUrl: settings.DATABASE_URL,
      schema,
      applicationName: "booking-events-worker",
      maxConnections,
      onError: (error) => logger.debug({ err: error }, "lost a connection to PostgreSQL"),
    });
  const pool = open(settings.DATABASE_SCHEMA, maxConnections);
  // It has no connection while test partners send nothing, and nothing is maintained.
  const testPool = open(testSchemaOf(settings.DATABASE_SCHEMA), maxTestConnections);
  const outageGate = new OutageGate({
    probe: () => probeWrites(pool, migration.isDone() ? migration.database() : undefined),
    signal,
    onChange(outage) {
      if (outage === null) logger.info("PostgreSQL is available again: applying events");
      else logger.error({ code: outage.code }, "PostgreSQL is unavailable: waiting for it. No event loses an attempt.");
    },
  });
  const migration = new Migration({
    databaseUrl: settings.DATABASE_URL,
    schema: settings.DATABASE_SCHEMA,
    pool,
    testPool,
    digestKey: settings.DIGEST_KEY,
    logger,
    signal,
  });
  const health = new DatabaseHealth({ pool, migration, outageGate });
  // The worker goes on. Events that it applied before are at the same risk, and if it stopped, the backlog would grow
  // until ingest refuses events.
  const durability = new ReportedProblems((problems) => {
    if (problems.length === 0) logger.info("PostgreSQL keeps committed data again");
    else logger.error({ problems }, "PostgreSQL may lose applied events in a crash of its machine");
  });
  // The worker is still ready. Its own indexes have an order that never changes.
  const collations = new ReportedProblems((problems) => {
    if (problems.length > 0) logger.warn({ problems }, "PostgreSQL may sort text otherwise than its indexes");
  });
  const maintenanceMetrics = createMaintenanceMetrics(registry);
  return { pool, testPool, outageGate, migration, health, durability, collations, maintenanceMetrics };
}

function createWorker({ settings, parts, logger, registry, tracing, signal }: Context, database: Database) {
  const { pool, testPool, outageGate, migration } = database;
  const digestKey = () => migration.digestKey();
  const metrics = createWorkerMetrics(registry);
  const transactions = new Transactions({
    pool,
    testPool,
    outageGate,
    applyEvents: parts.applyEvents,
    digestKey,
    database: () => migration.database(),
    duplicateWindowMs: settings.DUPLICATE_WINDOW_HOURS * millisecondsPerHour,
    metrics,
    tracing,
    logger,
  });
  const batches = new Batches({
    transactions,
    limits: {
      maxEvents: settings.BATCH_SIZE,
      maxCharacters: maxCharactersInBatch,
      maxJsonValues: maxJsonValuesInBatch,
      maxConcurrentBatches,
      interval: batchInterval,
      maxAsideMs,
    },
    metrics,
    signal,
  });
  const deadLetters = new DeadLetters({ pool, testPool, outageGate, digestKey, database: () => migration.database() });
  const laterVersions = new LaterVersions(logger);
  return { batches, transactions, deadLetters, metrics, laterVersions, tracing, logger, signal } satisfies Worker;
}

function createQueue({ settings, parts, logger, registry }: Context, database: Database, worker: Worker) {
  const watch: QueueWatch<WorkerShard> = new QueueWatch({
    shards: () => shards.current(),
    database: () => database.migration.database(),
    isEmpty: async () => (await readDatabaseIdentity(database.pool)).isEmpty,
    logger,
  });
  const shards = new ShardService({
    shardCount: settings.QUEUE_SHARDS,
    limits: { concurrency: settings.CONCURRENCY, maxHeldBytes },
    open: (shard, limits) =>
      new WorkerShard({
        location: locateShard({ redisServers: toRedisServers(settings), prefix: settings.QUEUE_PREFIX }, shard),
        limits,
        createConsumer: parts.createConsumer,
        worker,
        isDatabaseOut: () => database.health.isOut(),
        isPaused: () => watch.warnings.length > 0 || clocks.isHostWrong(),
        // Before the migration is done, it fails. Then the worker looks.
        onConnected: () => void watch.look().catch(() => {}),
        logger: settings.QUEUE_SHARDS > 1 || shard > 0 ? logger.child({ shard }) : logger,
      }),
    logger,
  });
  const current = () => [...shards.current()];
  exportQueueMetrics(
    registry,
    createStateReader(() => current().map(([shard, { consumer }]) => [shard, consumer.readState])),
  );
  exportWorkerState(registry, {
    isDatabaseOut: () => database.health.isOut(),
    isDatabaseUp: () => database.health.answers(),
    isRedisConnected: () => isAnyConnected(shards.current()),
    countOpenLetters: async () => (await groupDeadLetters(database.pool, {})).slice(0, maxCodes),
    listFeedReaders: () => listFeedReaders(database.pool, maxFeedReaders),
    isStuck: () => current().some(([, shard]) => shard.isStuck()),
  });
  const clocks = new ClockWatch({
    readRedis: () => current().map(([, { consumer }]) => consumer.readState()),
    readDatabase: () => readDatabaseTimes(database.pool),
    metrics: registry,
    logger,
  });
  const queue = {
    redisServers: toRedisServers(settings),
    prefix: settings.QUEUE_PREFIX,
    shardCount: settings.QUEUE_SHARDS,
  };
  const arrivals = new ArrivalsWatch({ pool: database.pool, queue, metrics: registry });
  return { shards, watch, clocks, arrivals };
}

async function start(
  { settings, logger, signal }: Context,
  { pool, testPool, migration, durability, collations, maintenanceMetrics }: Database,
  worker: Worker,
  { shards, watch, clocks, arrivals }: Queue,
  shutdown: GracefulShutdown,
): Promise<void> {
  try {
    const migrations = await migration.run();
    // A worker whose clock is wrong takes no event, not even in its first moment. The connection to Redis takes a while;
    // with a Redis that comes later, the worker may take events until its next look.
    await tryFor(firstLookMs, () => lookAtClocks(clocks, shards), signal);
    shards.start();
    // If Redis does not answer, the worker looks when it does.
    await watch.look().catch(() => {});
    // If Redis or PostgreSQL does not answer, that is reported elsewhere.
    keepDoing(() => shards.adjust(), shardIntervalMs, signal);
    keepDoing(() => watch.look(), recordIntervalMs, signal);
    keepDoing(() => sweepDeadLetters(worker), letterSweepIntervalMs, signal);
    const standbys = settings.DATABASE_STANDBYS_TO_CONFIRM;
    keepDoing(async () => durability.report(await findRisks(pool, standbys)), durabilityIntervalMs, signal);
    keepDoing(async () => collations.report(await findCollationWarnings(pool)), collationIntervalMs, signal);
    keepDoing(() => lookAtClocks(clocks, shards), clockIntervalMs, signal);
    keepDoing(() => arrivals.look(), arrivalsIntervalMs, signal);
    void maintainRegularly({
      async maintain() {
        const options = { findClockProblem: (times: DatabaseTimes) => clocks.findProblem(times), signal };
        const rules = toWorkerRules(settings);
        // Others do by hand what workers do, and judge it.
        await recordWorkerRules(pool, rules);
        const done = await maintain(pool, rules.retention, options);
        return withTests(done, await maintain(testPool, testRetention, options));
      },
      estimateDefaultPartition: () => estimateDefaultPartition(pool),
      metrics: maintenanceMetrics,
      logger,
      signal,
    });
    if (watch.problems.length > 0) return;
    logger.info({ version, migrations, concurrency: settings.CONCURRENCY }, "ready to take events");
  } catch (error) {
    if (!signal.aborted) shutdown.fail("stopping: the database can't be used", error);
  }
}

/**
 * Events that failed are due by this host's clock. If it were ahead, the worker would use up all of their attempts at
 * once, so it leaves the queue to others.
 */
async function lookAtClocks(clocks: ClockWatch, shards: ShardService<WorkerShard>): Promise<void> {
  await clocks.look();
  for (const { consumer } of shards.current().values()) consumer.halt("clock", clocks.isHostWrong());
}

/** Returns why PostgreSQL may lose committed events. */
async function findRisks(pool: Pool, standbysToConfirm: number): Promise<string[]> {
  return [...(await findDurabilityProblems(pool)), ...(await findStandbyProblems(pool, standbysToConfirm))];
}

/** What was removed of test partners is not counted. */
function withTests(done: Maintained, ofTests: Maintained): Maintained {
  const problems = ofTests.problems.map((problem) => `Test partners' bookings: ${problem}`);
  return { ...done, problems: [...done.problems, ...problems], hasMore: done.hasMore || ofTests.hasMore };
}

function toWorkerRules(settings: Context["settings"]): WorkerRules {
  return {
    retention: {
      retentionDays: settings.RETENTION_DAYS,
      deletedRetentionDays: settings.DELETED_RETENTION_DAYS,
      deadLetterRetentionDays: settings.DEAD_LETTER_RETENTION_DAYS,
    },
    duplicateWindowHours: settings.DUPLICATE_WINDOW_HOURS,
  };
}
