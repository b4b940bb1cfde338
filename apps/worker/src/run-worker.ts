import { createConsumer } from "@booking-events/queue";
import {
  adminPort,
  createLogger,
  createMetrics,
  installGracefulShutdown,
  parseEnvironment,
  repeat,
  shutdownPhases,
  startHealthServer,
  variables,
  version,
} from "@booking-events/runtime";
import {
  closeLettersOfApplied,
  createPool,
  findDeadLetter,
  findDurabilityProblems,
  inTransaction,
  migrate,
  probeWrites,
  resolveDeadLetter,
  writeDeadLetter,
} from "@booking-events/store";
import { applyAlone } from "./apply/apply-alone.ts";
import { applyEvents } from "./apply/apply-events.ts";
import { createBatchApplier } from "./apply/apply-in-batches.ts";
import type { RecordedWarning } from "./apply/plan-batch.ts";
import { describeFault } from "./deliver/describe-fault.ts";
import { type ProcessOptions, processDelivery } from "./deliver/process-delivery.ts";
import { createSweep } from "./deliver/sweep-given-up.ts";
import { createOutageGate } from "./deliver/wait-out-outage.ts";
import { migrateAtStart } from "./migrate-at-start.ts";
import { createDatabaseCheck } from "./watch/check-database.ts";
import { findProblems, type WorkerState } from "./watch/find-problems.ts";
import { durabilityIntervalMs, watchDurability } from "./watch/watch-durability.ts";
import { watchLaterVersions } from "./watch/watch-later-versions.ts";
import { lookIntervalMs, watchProgress } from "./watch/watch-progress.ts";
import { createWorkerMetrics } from "./watch/worker-metrics.ts";

const entries = {
  ADMIN_HOST: variables.ADMIN_HOST,
  ADMIN_PORT: adminPort(9102),
  REDIS_URL: variables.REDIS_URL,
  DATABASE_URL: variables.DATABASE_URL,
  QUEUE_PREFIX: variables.QUEUE_PREFIX,
  CONCURRENCY: variables.CONCURRENCY,
  BATCH_SIZE: variables.BATCH_SIZE,
  DUPLICATE_WINDOW_HOURS: variables.DUPLICATE_WINDOW_HOURS,
  LOG_LEVEL: variables.LOG_LEVEL,
  SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS,
};

const millisecondsPerHour = 60 * 60 * 1_000;
/** While one batch waits for its commit, the next one's queries run. */
const maxConcurrentBatches = 2;
/** At 120 events/s a worker, PostgreSQL spent 1.6 times as much CPU time without it. */
const minBatchIntervalMs = 20;
/**
 * For the batches, the group that stands aside, dead letters, a probe and the health check. Of the 100 that PostgreSQL
 * allows, so that many workers fit in.
 */
const maxConnections = maxConcurrentBatches + 4;
/**
 * By these, the worst events that ingest accepts cost the worker and PostgreSQL about as much as ordinary ones: an
 * ordinary event has a thousand characters and 40 values.
 */
const maxCharactersInBatch = 4 * 1_024 * 1_024;
const maxJsonValuesInBatch = 100_000;
/** For the text of the events that are held: CONCURRENCY of them at 11,000 characters each, or 512 of the largest. */
const maxHeldBytes = 64 * 1_024 * 1_024;
/** BullMQ gives an event up only after many crashes, so there is seldom anything to sweep. */
const sweepIntervalMs = 30_000;

/** What a worker is made of where it matters to a test that lets it stop, or go wrong, at a chosen point. */
const workerParts = { applyEvents, createConsumer, createPool };
export type WorkerParts = typeof workerParts;

/**
 * Constructs the worker and starts it. Resolves when it takes events, or when it was told to stop before that.
 *
 * @param parts replaces some of what the worker is made of
 * @throws StartError
 */
export async function runWorker(environment: NodeJS.ProcessEnv, parts: Partial<WorkerParts> = {}): Promise<void> {
  const made = { ...workerParts, ...parts };
  const settings = parseEnvironment(entries, environment);
  const logger = createLogger({ name: "worker", level: settings.LOG_LEVEL });
  const metrics = createMetrics("worker");
  const stopping = new AbortController();
  let isMigrated = false;
  let migrationFault: string | null = null;

  const pool = made.createPool({
    databaseUrl: settings.DATABASE_URL,
    applicationName: "booking-events-worker",
    maxConnections,
    onError: (error) => logger.debug({ err: error }, "lost a connection to PostgreSQL"),
  });
  const outageGate = createOutageGate({
    probe: () => probeWrites(pool),
    signal: stopping.signal,
    onChange: (outage) => {
      if (outage === null) logger.info("PostgreSQL is back: applying events again");
      else logger.error({ code: outage.code }, "PostgreSQL is out: waiting for it, no event loses an attempt");
    },
  });
  const isDatabaseOut = () => migrationFault !== null || outageGate.currentOutage() !== null;
  const duplicateWindowMs = settings.DUPLICATE_WINDOW_HOURS * millisecondsPerHour;
  const consumer = made.createConsumer({
    redisUrl: settings.REDIS_URL,
    prefix: settings.QUEUE_PREFIX,
    concurrency: settings.CONCURRENCY,
    maxHeldBytes,
    handle: (delivery) => processDelivery(delivery, processOptions),
    onError: (error) => logger.debug({ err: error }, "trouble with Redis: the queue reconnects by itself"),
    onGone: (eventId) =>
      logger.error({ eventId }, "dropped an event from the queue, of which Redis has nothing but the id"),
  });
  const workerMetrics = createWorkerMetrics(metrics, {
    countBacklog: () => consumer.countBacklog(),
    isDatabaseOut,
    isStuck: () => progressWatch.isStuck(),
  });
  const progressWatch = watchProgress({
    countWaiting: async () => (await consumer.countBacklog()).waiting,
    countFinished: workerMetrics.countFinished,
    isWaitingForDatabase: isDatabaseOut,
    logger,
  });
  const onWarning = (warning: RecordedWarning) => {
    workerMetrics.countWarning(warning.code);
    logger.warn(warning, "event recorded with a warning");
  };
  const durabilityWatch = watchDurability({ findProblems: () => findDurabilityProblems(pool), logger });
  const laterVersions = watchLaterVersions({ logger });
  const processOptions: ProcessOptions = {
    apply: createBatchApplier({
      applyBatch: (envelopes, how) =>
        outageGate.run(() => made.applyEvents(pool, envelopes, { duplicateWindowMs, onWarning, ...how })),
      limits: {
        maxEvents: settings.BATCH_SIZE,
        maxCharacters: maxCharactersInBatch,
        maxJsonValues: maxJsonValuesInBatch,
        maxConcurrentBatches,
        minIntervalMs: minBatchIntervalMs,
      },
      signal: stopping.signal,
    }),
    readBytes: (delivery) => consumer.readBytes(delivery),
    writeDeadLetter: (letter) => inTransaction(pool, (client) => writeDeadLetter(client, letter)),
    isDeadLetterClosed: (eventId) =>
      inTransaction(pool, async (client) => (await findDeadLetter(client, eventId))?.resolvedAt != null),
    closeDeadLetter: (eventId, outcome) =>
      inTransaction(pool, (client) =>
        resolveDeadLetter(client, { eventId, resolvedBy: "worker", resolution: `replayed: ${outcome}` }),
      ),
    outageGate,
    count: workerMetrics.count,
    countFault: workerMetrics.countFault,
    onLaterVersion: laterVersions.note,
    logger,
    signal: stopping.signal,
  };

  const sweep = createSweep({
    sweepFailed: consumer.sweepFailed,
    process: processOptions,
    applyAlone: (event) =>
      applyAlone(event, (envelopes) =>
        made.applyEvents(pool, envelopes, { duplicateWindowMs, onWarning, isAlone: true }),
      ),
    closeLetters: () => outageGate.run(() => inTransaction(pool, closeLettersOfApplied)),
    countFault: workerMetrics.countSweepFault,
    logger,
    signal: stopping.signal,
  });

  const state: WorkerState = {
    isStopping: () => stopping.signal.aborted,
    isRedisConnected: () => consumer.isConnected(),
    databaseOutage: () => outageGate.currentOutage()?.code ?? migrationFault,
    isMigrated: () => isMigrated,
    checkDatabase: createDatabaseCheck(
      () => pool.query("select 1"),
      (error) => describeFault(error).code,
    ),
    durabilityProblems: durabilityWatch.problems,
    isStuck: progressWatch.isStuck,
  };
  const healthServer = await startHealthServer({
    host: settings.ADMIN_HOST,
    port: settings.ADMIN_PORT,
    findProblems: () => findProblems(state),
    findWarnings: laterVersions.findWarnings,
    metrics,
  });
  const shutdown = installGracefulShutdown({
    timeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    logger,
    phases: shutdownPhases(settings.SHUTDOWN_TIMEOUT_MS, {
      async finishWork() {
        stopping.abort(new Error("The worker is stopping."));
        await consumer.drain();
      },
      async closeConnections() {
        healthServer.close();
        await Promise.all([consumer.close(), pool.end()]);
      },
    }),
  });

  try {
    const migrations = await migrateAtStart({
      migrate: () => migrate(settings.DATABASE_URL),
      onFault: (fault) => {
        if ((fault === null) !== (migrationFault === null))
          logger[fault === null ? "info" : "error"](
            { code: fault?.code },
            fault === null ? "PostgreSQL is back" : "PostgreSQL is out: waiting for it to migrate the database",
          );
        migrationFault = fault?.code ?? null;
      },
      signal: stopping.signal,
    });
    isMigrated = true;
    consumer.start();
    keepDoing(() => progressWatch.look(Date.now()), lookIntervalMs, stopping.signal);
    keepDoing(sweep, sweepIntervalMs, stopping.signal);
    keepDoing(durabilityWatch.look, durabilityIntervalMs, stopping.signal);
    logger.info({ version, migrations, concurrency: settings.CONCURRENCY }, "ready to take events");
  } catch (error) {
    if (!stopping.signal.aborted) shutdown.fail("stopping: the database could not be migrated", error);
  }
}

/** At once, and then at the interval, until the signal aborts. */
function keepDoing(work: () => Promise<void>, intervalMs: number, signal: AbortSignal): void {
  // It is done again anyway, and whatever can fail is said elsewhere.
  const attempt = () => work().catch(() => {});
  void attempt().then(() => repeat(attempt, intervalMs, signal));
}
