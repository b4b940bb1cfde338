import {
  type Consumer,
  createConsumer,
  createStateReader,
  exportQueueMetrics,
  fetchIntervalMs,
  type HoldLimits,
  locateShard,
  namingShards,
  workerHeartbeatIntervalMs,
} from "@booking-events/queue";
import {
  adminPort,
  createDatabaseCheck,
  createLogger,
  createMetrics,
  createTracing,
  exportCertificates,
  type GracefulShutdown,
  installGracefulShutdown,
  type Logger,
  listUrls,
  parseEnvironment,
  type Registry,
  redisVariables,
  repeat,
  shutdownPhases,
  startHealthServer,
  type Tracing,
  toRedisServers,
  variables,
  version,
  withDeadline,
} from "@booking-events/runtime";
import {
  closeLettersOfApplied,
  countOpenDeadLetters,
  createPool,
  type DigestKey,
  findDurabilityProblems,
  findStandbyProblems,
  inTransaction,
  maintain,
  migrate,
  openDigestKey,
  probeWrites,
  type RetentionRules,
  readLogStatus,
} from "@booking-events/store";
import type { Pool } from "pg";
import { applyEvents } from "./apply/apply-events.ts";
import type { RecordedWarning } from "./apply/plan-batch.ts";
import { traceBatches } from "./apply/trace-batches.ts";
import { applyAlone } from "./batches/apply-alone.ts";
import type { ApplyBatch } from "./batches/apply-aside.ts";
import { createBatchApplier } from "./batches/apply-in-batches.ts";
import { createDeadLetters } from "./deliver/dead-letters.ts";
import { type ProcessOptions, processDelivery } from "./deliver/process-delivery.ts";
import { createLetterCloser, createSweep } from "./deliver/sweep-given-up.ts";
import { maintainRegularly } from "./maintain-regularly.ts";
import { createMigration, type Migration } from "./migrate-at-start.ts";
import { describeFault } from "./outages/describe-fault.ts";
import { createOutageGate, type OutageGate } from "./outages/wait-out-outage.ts";
import { lookForShardsIntervalMs, type ServedShard, type ShardService, serveShards } from "./shards/serve-shards.ts";
import { findProblems, type WorkerState } from "./watch/find-problems.ts";
import { createMaintenanceMetrics } from "./watch/maintenance-metrics.ts";
import { type DurabilityWatch, durabilityIntervalMs, watchDurability } from "./watch/watch-durability.ts";
import { type LaterVersions, watchLaterVersions } from "./watch/watch-later-versions.ts";
import { type PauseWatch, pauseIntervalMs, watchPause } from "./watch/watch-pause.ts";
import { lookIntervalMs, type ProgressWatch, watchProgress } from "./watch/watch-progress.ts";
import { createWorkerMetrics, maxCodes, type WorkerMetrics } from "./watch/worker-metrics.ts";

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
 * For the batches, a group apart from them, dead letters, a probe, the health check and maintenance. PostgreSQL allows
 * 100 connections by default, which is enough for many workers.
 */
const maxConnections = maxConcurrentBatches + 5;
/**
 * With these limits, a batch of the worst events that ingest accepts costs the worker and PostgreSQL about as much as a
 * batch of ordinary ones. An ordinary event has a thousand characters and 40 values.
 */
const maxCharactersInBatch = 4 * 1_024 * 1_024;
const maxJsonValuesInBatch = 100_000;
/** For the text of the events that the worker holds: 3,000 with 11,000 characters each, or 512 of the largest. */
const maxHeldBytes = 64 * 1_024 * 1_024;
/** BullMQ gives up an event only after many crashes, so there is rarely anything to sweep. */
const sweepIntervalMs = 30_000;

/** The parts of a worker that a test replaces, to stop the worker or let it fail at a chosen point. */
const workerParts = { applyEvents, createConsumer, createPool };
export type WorkerParts = typeof workerParts;

/** What all parts of the worker share. */
interface Context {
  settings: ReturnType<typeof readSettings>;
  parts: WorkerParts;
  logger: Logger;
  metrics: Registry;
  /** Undefined if traces are off. */
  tracing: Tracing | undefined;
  /** Aborts when the worker stops. */
  signal: AbortSignal;
}

/**
 * Builds the worker and starts it. Resolves when the worker takes events, or when it was told to stop before that.
 *
 * @param parts replaces parts of the worker
 * @throws StartError
 */
export async function runWorker(environment: NodeJS.ProcessEnv, parts: Partial<WorkerParts> = {}): Promise<void> {
  const settings = readSettings(environment);
  const stopping = new AbortController();
  const logger = createLogger({ name: "worker", level: settings.LOG_LEVEL });
  const context: Context = {
    settings,
    parts: { ...workerParts, ...parts },
    logger,
    metrics: createMetrics("worker"),
    tracing: await createTracing({
      serviceName: "booking-events-worker",
      environment,
      shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
      logger,
    }),
    signal: stopping.signal,
  };
  exportCertificates(
    context.metrics,
    { redis: listUrls(toRedisServers(settings)), postgresql: settings.DATABASE_URL },
    stopping.signal,
  );
  const database = createDatabase(context);
  const delivery = createDelivery(context, database);
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: createProblemFinder(context, database, delivery),
    findWarnings: () => [
      ...delivery.laterVersions.findWarnings(),
      ...delivery.pauseWatch.findWarnings(),
      ...findShardWarnings(delivery.shards.current()),
    ],
    metrics: context.metrics,
  });
  const shutdown = installGracefulShutdown({
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger: context.logger,
    phases: shutdownPhases(settings.SHUTDOWN_TIMEOUT_MS, {
      async finishWork() {
        stopping.abort(new Error("The worker is stopping."));
        await delivery.shards.drain();
      },
      async closeConnections() {
        healthServer.close();
        await Promise.all([delivery.shards.close(), database.pool.end(), context.tracing?.shutdown()]);
      },
    }),
  });
  await start(context, database, delivery, shutdown);
}

function readSettings(environment: NodeJS.ProcessEnv) {
  return parseEnvironment(entries, environment);
}

interface Database {
  pool: Pool;
  outageGate: OutageGate;
  migration: Migration;
  /** @throws before the migration is done */
  digestKey: () => DigestKey;
  durabilityWatch: DurabilityWatch;
  maintainRegularly: () => Promise<void>;
  isOut: () => boolean;
  /** Asks PostgreSQL. @returns why it does not answer; null: it does */
  check: () => Promise<string | null>;
}

function createDatabase(context: Context): Database {
  const { settings, parts, logger, metrics, signal } = context;
  const pool = parts.createPool({
    databaseUrl: settings.DATABASE_URL,
    schema: settings.DATABASE_SCHEMA,
    applicationName: "booking-events-worker",
    maxConnections,
    onError: (error) => logger.debug({ err: error }, "lost a connection to PostgreSQL"),
  });
  const outageGate = createOutageGate({
    probe: () => probeWrites(pool),
    signal,
    onChange: (outage) => {
      if (outage === null) logger.info("PostgreSQL is available again: applying events");
      else logger.error({ code: outage.code }, "PostgreSQL is unavailable: waiting for it. No event loses an attempt.");
    },
  });
  const maintenanceMetrics = createMaintenanceMetrics(metrics);
  let digestKey: DigestKey | undefined;
  const migration = createMigration({
    async migrate() {
      const names = await migrate(settings.DATABASE_URL, { schema: settings.DATABASE_SCHEMA });
      digestKey = await openDigestKey(pool, settings.DIGEST_KEY);
      return names;
    },
    logger,
    signal,
  });
  return {
    pool,
    outageGate,
    migration,
    digestKey() {
      if (digestKey === undefined) throw new Error("The key is read when the database has been migrated.");
      return digestKey;
    },
    durabilityWatch: watchDurability({
      findProblems: async () => [
        ...(await findDurabilityProblems(pool)),
        ...(await findStandbyProblems(pool, settings.DATABASE_STANDBYS_TO_CONFIRM)),
      ],
      logger,
    }),
    maintainRegularly: () =>
      maintainRegularly({
        maintain: () => maintain(pool, toRetentionRules(settings), { signal, digestKey }),
        readStatus: () => readLogStatus(pool),
        ...{ metrics: maintenanceMetrics, logger, signal },
      }),
    isOut: () => migration.currentFault() !== null || outageGate.currentOutage() !== null,
    check: createDatabaseCheck(
      () => pool.query("select 1"),
      (error) => describeFault(error).code,
    ),
  };
}

function toRetentionRules(settings: Context["settings"]): RetentionRules {
  return {
    retentionDays: settings.RETENTION_DAYS,
    deletedRetentionDays: settings.DELETED_RETENTION_DAYS,
    deadLetterRetentionDays: settings.DEAD_LETTER_RETENTION_DAYS,
  };
}

interface DeliveryParts {
  shards: ShardService<WorkerShard>;
  pauseWatch: PauseWatch;
  laterVersions: LaterVersions;
  closeLetters: () => Promise<void>;
}

interface WorkerShard extends ServedShard {
  consumer: Consumer;
  progressWatch: ProgressWatch;
}

/** Takes events from the queue and applies them. */
function createDelivery(context: Context, database: Database): DeliveryParts {
  const { settings, logger, metrics, signal } = context;
  const current = () => shards.current();
  const pauseWatch = watchPause({ readPaused: () => readPaused(current()), logger });
  exportQueueMetrics(
    metrics,
    createStateReader(() => Array.from(current(), ([shard, { consumer }]) => [shard, consumer.readState])),
  );
  const workerMetrics = createWorkerMetrics(metrics, {
    isDatabaseOut: database.isOut,
    isDatabaseUp: async () => (await database.check()) === null,
    isRedisConnected: () => [...current().values()].some(({ consumer }) => consumer.isConnected()),
    countOpenLetters: () => countOpenDeadLetters(database.pool, maxCodes),
    isStuck: () => [...current().values()].some(({ progressWatch }) => progressWatch.isStuck()),
  });
  const laterVersions = watchLaterVersions({ logger });
  const applyBatch = createApplyBatch(context, database, workerMetrics);
  const process = createProcessOptions(context, database, { workerMetrics, laterVersions, applyBatch });
  const shards = serveShards({
    shardCount: settings.QUEUE_SHARDS,
    limits: { concurrency: settings.CONCURRENCY, maxHeldBytes },
    open: (shard, limits) =>
      openShard(context, database, { shard, limits, process, pauseWatch, workerMetrics, applyBatch }),
    logger,
  });
  const closeLetters = createLetterCloser({
    closeLetters: () => database.outageGate.run(() => inTransaction(database.pool, closeLettersOfApplied)),
    countFault: workerMetrics.countSweepFault,
    ...{ logger, signal },
  });
  return { shards, pauseWatch, laterVersions, closeLetters };
}

/** @throws if no shard answers */
async function readPaused(shards: ReadonlyMap<number, WorkerShard>): Promise<boolean> {
  const reading = Array.from(shards.values(), ({ consumer }) => withDeadline(consumer.isPaused(), pauseIntervalMs));
  const results = await Promise.allSettled(reading);
  if (results.every(({ status }) => status === "rejected")) throw new Error("No shard of the queue answers.");
  return results.some((result) => result.status === "fulfilled" && result.value);
}

/** Creates what takes the events of one shard. All shards' events are applied together. */
function openShard(
  context: Context,
  database: Database,
  parts: {
    shard: number;
    limits: HoldLimits;
    process: Omit<ProcessOptions, "readBytes">;
    pauseWatch: PauseWatch;
    workerMetrics: WorkerMetrics;
    applyBatch: ApplyBatch;
  },
): WorkerShard {
  const { settings } = context;
  const { shard, limits, pauseWatch, workerMetrics, applyBatch } = parts;
  const hasOthers = settings.QUEUE_SHARDS > 1 || shard > 0;
  const logger = hasOthers ? context.logger.child({ shard }) : context.logger;
  let finished = 0;
  const consumer = context.parts.createConsumer({
    ...locateShard({ redisServers: toRedisServers(settings), prefix: settings.QUEUE_PREFIX }, shard),
    ...{ version, ...limits },
    handle: (delivery) => processDelivery(delivery, processOptions),
    onError: (error) => logger.debug({ err: error }, "lost Redis: the queue reconnects by itself"),
    onMissingJob: (eventId) =>
      logger.error({ eventId }, "dropped an event from the queue, since Redis has only its id"),
  });
  const processOptions: ProcessOptions = {
    ...parts.process,
    readBytes: (delivery) => consumer.readBytes(delivery),
    count(delivery) {
      finished += 1;
      workerMetrics.count(delivery);
    },
  };
  const progressWatch = watchProgress({
    countWaiting: async () => (await consumer.countBacklog()).waiting,
    countFinished: () => finished,
    isWaitingForDatabase: database.isOut,
    isPaused: pauseWatch.isPaused,
    logger,
  });
  const sweep = createSweep({
    sweepFailed: consumer.sweepFailed,
    process: processOptions,
    applyAlone: (event) =>
      applyAlone(event, (envelopes) => applyBatch(envelopes, { isAlone: true, waitsForLocks: true })),
    countFault: workerMetrics.countSweepFault,
    logger,
    signal: context.signal,
  });
  return {
    ...{ consumer, progressWatch },
    startWatches(signal) {
      keepDoing(consumer.recordAlive, workerHeartbeatIntervalMs, signal);
      keepDoing(() => progressWatch.look(Date.now()), lookIntervalMs, signal);
      keepDoing(async () => (pauseWatch.isPaused() ? undefined : sweep()), sweepIntervalMs, signal);
    },
  };
}

function createApplyBatch(
  { settings, parts, logger, tracing }: Context,
  { pool, digestKey }: Database,
  metrics: WorkerMetrics,
): ApplyBatch {
  const duplicateWindowMs = settings.DUPLICATE_WINDOW_HOURS * millisecondsPerHour;
  const onWarning = (warning: RecordedWarning) => {
    metrics.countWarning(warning.code);
    logger.warn(warning, "event recorded with a warning");
  };
  return traceBatches(tracing, (envelopes, mode, batch) =>
    parts.applyEvents(pool, envelopes, { digestKey: digestKey(), duplicateWindowMs, onWarning, batch, ...mode }),
  );
}

function createProcessOptions(
  { settings, logger, signal, tracing }: Context,
  { pool, outageGate, digestKey }: Database,
  parts: { workerMetrics: WorkerMetrics; laterVersions: LaterVersions; applyBatch: ApplyBatch },
): Omit<ProcessOptions, "readBytes"> {
  const { workerMetrics, laterVersions, applyBatch } = parts;
  return {
    apply: createBatchApplier({
      applyBatch: (envelopes, mode) => outageGate.run(() => applyBatch(envelopes, mode)),
      limits: {
        maxEvents: settings.BATCH_SIZE,
        maxCharacters: maxCharactersInBatch,
        maxJsonValues: maxJsonValuesInBatch,
        maxConcurrentBatches,
        interval: batchInterval,
      },
      onBatch: workerMetrics.observeBatch,
      signal,
    }),
    ...createDeadLetters(pool, digestKey),
    outageGate,
    count: workerMetrics.count,
    countFault: workerMetrics.countFault,
    onLaterVersion: laterVersions.note,
    tracing,
    logger,
    signal,
  };
}

function createProblemFinder(
  { signal }: Context,
  { outageGate, migration, durabilityWatch, check }: Database,
  { shards }: DeliveryParts,
): () => Promise<string[]> {
  const state: WorkerState = {
    isStopping: () => signal.aborted,
    redisProblems: () => (isAnyConnected(shards.current()) ? [] : findRedisProblems(shards.current())),
    databaseOutage: () => outageGate.currentOutage()?.code ?? migration.currentFault(),
    isMigrated: migration.isDone,
    checkDatabase: check,
    durabilityProblems: durabilityWatch.problems,
    stuckShards: () =>
      [...shards.current()].filter(([, { progressWatch }]) => progressWatch.isStuck()).map(([shard]) => shard),
    isSharded: () => shards.current().size > 1,
  };
  return () => findProblems(state);
}

/** An outage of some shards does not stop the others. */
function findShardWarnings(shards: ReadonlyMap<number, WorkerShard>): string[] {
  return isAnyConnected(shards) ? findRedisProblems(shards) : [];
}

function isAnyConnected(shards: ReadonlyMap<number, WorkerShard>): boolean {
  return [...shards.values()].some(({ consumer }) => consumer.isConnected());
}

function findRedisProblems(shards: ReadonlyMap<number, WorkerShard>): string[] {
  const problems = Array.from(shards, ([shard, { consumer }]): [number, string[]] => {
    const problem = consumer.connectionProblem();
    return [shard, problem === null ? [] : [problem]];
  });
  return shards.size === 1 ? problems.flatMap(([, ofShard]) => ofShard) : namingShards(problems);
}

async function start(
  { settings, logger, signal }: Context,
  { migration, durabilityWatch, maintainRegularly }: Database,
  { shards, pauseWatch, closeLetters }: DeliveryParts,
  shutdown: GracefulShutdown,
): Promise<void> {
  try {
    const migrations = await migration.run();
    shards.start();
    keepDoing(shards.look, lookForShardsIntervalMs, signal);
    keepDoing(pauseWatch.look, pauseIntervalMs, signal);
    keepDoing(closeLetters, sweepIntervalMs, signal);
    keepDoing(durabilityWatch.look, durabilityIntervalMs, signal);
    void maintainRegularly();
    logger.info({ version, migrations, concurrency: settings.CONCURRENCY }, "ready to take events");
  } catch (error) {
    if (!signal.aborted) shutdown.fail("stopping: the database can't be used", error);
  }
}

/** Runs `work` now, and then at the interval, until the signal aborts. */
function keepDoing(work: () => Promise<void>, intervalMs: number, signal: AbortSignal): void {
  // A failure is reported elsewhere, and the next run tries again.
  const attempt = () => work().catch(() => {});
  void attempt().then(() => repeat(attempt, intervalMs, signal));
}
