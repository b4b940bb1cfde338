import { setTimeout as sleep } from "node:timers/promises";
import { createPool, defaultSchema, type Queryable, ServerClient } from "@booking-events/store";
import pg from "pg";
import { FeedGapError, ForeignReaderError } from "../errors.ts";
import { readPosition } from "../feed-position.ts";
import { consoleLogger, type FeedLogger, nameError } from "../logger.ts";
import { type FeedTables, tablesIn } from "../tables.ts";
import { createWakeUps } from "../wake-ups.ts";
import { BatchConsumer } from "./batch-consumer.ts";
import { Consumer } from "./consumer.ts";
import type { BatchConsumer as BatchOptions, ConsumerOptions, SingleConsumer } from "./consumer-options.ts";
import { findDue, type Progress, recordProgress, removeSpent } from "./deliveries.ts";
import type { DeliveryEvent } from "./delivery-event.ts";
import { DueClock } from "./due-clock.ts";
import { Finder } from "./finder.ts";
import type { ActiveConsumer, Host } from "./host.ts";
import {
  addReader,
  findReaders,
  type Lease,
  leaseMs,
  placeAgain,
  releaseLeases,
  renewLeases,
  takeLeases,
} from "./leases.ts";
import { readDeliveries } from "./read-deliveries.ts";
import { Recorder } from "./recorder.ts";
import { resolveOptions } from "./resolve-options.ts";
import { Tail } from "./tail.ts";
import { untilDone } from "./until-done.ts";

export interface DelivererOptions {
  /** PostgreSQL's URL, which may name several hosts. If it leads through PgBouncer, give `listenUrl` too. */
  database: string;
  /** Where the service's tables are. Default: `"public"`. */
  schema?: string;
  /** For LISTEN: a direct connection to PostgreSQL, or null to poll only. Default: `database`. */
  listenUrl?: string | null;
  /** For the handlers that use the transaction, which wait for one another. Default: 10. Four more are for the process. */
  maxConnections?: number;
  /** How often to look for changes if no notification comes. Default: 1,000 ms. */
  pollIntervalMs?: number;
  /** Default: the console. */
  logger?: FeedLogger;
  observe?: (event: DeliveryEvent) => void;
}

/** A consumer that this process is to deliver to when it can. */
interface Registration {
  options: SingleConsumer | BatchOptions;
  onStopped: (error: Error) => void;
  isStandby: boolean;
}

/** How often to look for a lease that nobody has, and to renew those that are held. */
const standbyIntervalMs = 1_000;
const renewIntervalMs = 3_000;
/** How long handlers may go on after the signal has aborted, and PostgreSQL may take to record what they did. */
const graceMs = 5_000;
/** For the queries of all consumers. */
const ownConnections = 3;
/** Deliveries that are due and wait for their turn, of each consumer. */
const maxDue = 50;
const dueIntervalMs = 1_000;

/**
 * Hands the changes of the feed to consumers. They share the connections and the queries, so one that has nothing to do
 * costs next to nothing. Any number of processes may do so for the same names: one at a time is active for each, and
 * another takes over within some seconds of its death.
 */
export class Deliverer {
  readonly #options: Required<DelivererOptions>;
  readonly #tables: FeedTables;
  readonly #registered = new Map<string, Registration>();
  readonly #active = new Map<string, ActiveConsumer>();
  readonly #tail = new Tail();
  readonly #leaseClock = new DueClock(0);
  readonly #dueClock = new DueClock(0);
  readonly #recorder: Recorder;
  readonly #finder: Finder;
  readonly #handlerPool: pg.Pool;
  readonly #ending = new AbortController();
  #pool: pg.Pool | undefined;
  #renewAtMs = 0;
  /** How often deliveries were recorded that wait. */
  #waitingRecorded = 0;

  constructor(options: DelivererOptions) {
    const defaults = { schema: defaultSchema, maxConnections: 10, pollIntervalMs: 1_000, observe: () => {} };
    this.#options = { ...defaults, listenUrl: options.database, logger: consoleLogger, ...options };
    this.#tables = tablesIn(this.#options.schema);
    this.#recorder = new Recorder(
      (progress) => this.#record(progress),
      (consumer) => this.#lose(consumer),
    );
    this.#finder = new Finder((wanted) => this.#read((pool) => readDeliveries(pool, this.#tables, wanted)));
    this.#handlerPool = createHandlerPool(this.#options);
  }

  /**
   * Delivers to a consumer from now on, or once the deliverer runs.
   *
   * @param options.onStopped called when the consumer can't go on: with the `StopDelivering` that its handler has thrown, a
   *   `FeedGapError`, or a `ForeignReaderError`. It has been removed then
   * @throws TypeError when options are wrong, or the name is in use
   */
  add({ onStopped, ...options }: ConsumerOptions & { onStopped: (error: Error) => void }): void {
    const resolved = resolveOptions(options);
    if (this.#registered.has(resolved.name)) throw new TypeError(`There is a consumer ${resolved.name} already.`);
    this.#registered.set(resolved.name, { options: resolved, onStopped, isStandby: false });
    this.#leaseClock.comeBy(0);
  }

  /** Ends delivering to a consumer. Its handlers have 5 s to finish. */
  async remove(name: string): Promise<void> {
    this.#registered.delete(name);
    const consumer = this.#active.get(name);
    if (consumer !== undefined) await this.#retire([consumer]);
  }

  /** Delivers until the signal aborts. Handlers then have 5 s to finish. Can be called once. */
  async run(signal: AbortSignal): Promise<void> {
    const { database, schema, listenUrl, logger, pollIntervalMs } = this.#options;
    const applicationName = "booking-events-deliver";
    const pool = createPool({
      databaseUrl: database,
      schema,
      applicationName,
      maxConnections: ownConnections,
      onError: () => {},
    });
    this.#pool = pool;
    const wakeUps = createWakeUps({ name: applicationName, listenUrl, schema, logger, signal });
    await Promise.allSettled([
      this.#keepLeases(signal),
      this.#readTail(signal, () => wakeUps.wait(pollIntervalMs)),
      this.#offerDue(signal),
    ]);
    await this.#retire([...this.#active.values()]);
    this.#ending.abort();
    // A handler that ignores its signal may still hold a connection.
    await withinGrace(Promise.all([pool.end(), this.#handlerPool.end()]));
  }

  async #keepLeases(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#leaseClock.wait(signal);
      for (const consumer of this.#active.values()) if (performance.now() > consumer.validUntilMs) this.#lose(consumer);
      const renewing = this.#active.size > 0 && performance.now() >= this.#renewAtMs;
      await this.#attempt(async (client) => {
        if (renewing) await this.#renew(client);
        await this.#takeFree(client);
      });
      this.#leaseClock.comeBy(standbyIntervalMs);
    }
  }

  /** What fails is done again the next time. */
  async #attempt(work: (client: Queryable) => Promise<void>): Promise<void> {
    try {
      await work(this.#connections());
    } catch (error) {
      this.#options.logger.warn({ code: nameError(error) }, "could not keep the leases of consumers: trying again");
    }
  }

  async #renew(client: Queryable): Promise<void> {
    const consumers = [...this.#active.values()];
    const validUntilMs = performance.now() + leaseMs;
    const renewed = await renewLeases(client, this.#tables, consumers);
    this.#renewAtMs = performance.now() + renewIntervalMs;
    const byName = new Map(renewed.map((one) => [one.name, one]));
    for (const consumer of consumers) {
      const one = byName.get(consumer.name);
      if (one === undefined) {
        this.#lose(consumer);
        continue;
      }
      consumer.validUntilMs = validUntilMs;
      consumer.hasWaiting = one.hasWaiting;
      this.#recorder.note(consumer, false);
    }
    if (renewed.some(({ hasWaiting }) => hasWaiting)) this.#dueClock.comeBy(0);
    const spent = consumers.filter(({ hasSpent }) => hasSpent);
    for (const consumer of spent) consumer.hasSpent = false;
    if (spent.length > 0)
      await removeSpent(
        client,
        this.#tables,
        spent.map(({ name }) => name),
      );
  }

  async #takeFree(client: Queryable): Promise<void> {
    const standbys = [...this.#registered.values()].filter(({ options }) => !this.#active.has(options.name));
    if (standbys.length === 0) return;
    const names = standbys.map(({ options }) => options.name);
    const readers = new Map((await findReaders(client, this.#tables, names)).map((reader) => [reader.name, reader]));
    for (const { options } of standbys) {
      const reader = readers.get(options.name);
      if (reader === undefined) await addReader(client, this.#tables, options);
      else if (reader.owner !== reader.role)
        this.#giveUp(options.name, new ForeignReaderError(options.name, reader.owner, reader.role));
    }
    const leases = await takeLeases(client, this.#tables, names);
    for (const lease of leases) await this.#activate(client, lease);
    for (const registration of standbys) this.#noteStandby(registration);
  }

  async #activate(client: Queryable, lease: Lease): Promise<void> {
    const registration = this.#registered.get(lease.name);
    if (registration === undefined) return releaseLeases(client, this.#tables, [lease]);
    const { options } = registration;
    try {
      const place = lease.place ?? (await placeAgain(client, this.#tables, { ...options, ...lease }));
      const held = { ...lease, place };
      const consumer =
        "handle" in options
          ? new Consumer(options, held, this.#host())
          : new BatchConsumer(options, held, this.#host());
      this.#active.set(lease.name, consumer);
      registration.isStandby = false;
      this.#options.observe({ type: "active", name: lease.name });
      this.#dueClock.comeBy(0);
      consumer.wake();
    } catch (error) {
      await releaseLeases(client, this.#tables, [lease]);
      if (!(error instanceof FeedGapError)) throw error;
      this.#giveUp(lease.name, error);
    }
  }

  #noteStandby(registration: Registration): void {
    const { name } = registration.options;
    if (registration.isStandby || this.#active.has(name) || !this.#registered.has(name)) return;
    registration.isStandby = true;
    this.#options.observe({ type: "standby", name });
  }

  #host(): Host {
    const { logger, observe } = this.#options;
    return {
      tail: this.#tail,
      tables: this.#tables,
      pool: this.#handlerPool,
      logger,
      observe,
      read: (work) => this.#read(work),
      find: (wanted) => this.#finder.find(wanted),
      noteProgress: (consumer, isUrgent) => this.#recorder.note(consumer, isUrgent),
      lookForDue: (consumer) => {
        consumer.hasWaiting = true;
        this.#waitingRecorded += 1;
        this.#dueClock.comeBy(0);
      },
      lose: (consumer) => this.#lose(consumer),
      stop: (consumer, error) => void this.#stop(consumer, error),
    };
  }

  #connections(): pg.Pool {
    if (this.#pool === undefined) throw new Error("The deliverer does not run.");
    return this.#pool;
  }

  #read<Result>(
    work: (pool: pg.Pool) => Promise<Result>,
    signal: AbortSignal = this.#ending.signal,
  ): Promise<Result> {
    return untilDone(() => work(this.#connections()), {
      what: "read or record deliveries",
      logger: this.#options.logger,
      signal,
      isFinal: (error) => error instanceof FeedGapError,
    });
  }

  async #record(progress: Progress[]): Promise<string[]> {
    const held = await this.#read((client) => recordProgress(client, this.#tables, progress));
    const pauses = progress.flatMap(({ rows }) => rows.flatMap(({ waiting }) => waiting?.pauseMs ?? []));
    if (pauses.length > 0) {
      this.#waitingRecorded += 1;
      this.#dueClock.comeBy(Math.min(...pauses));
    }
    return held;
  }

  #lose(consumer: ActiveConsumer): void {
    if (this.#active.get(consumer.name) !== consumer) return;
    this.#active.delete(consumer.name);
    consumer.abort();
    this.#options.logger.warn({ name: consumer.name }, "another process may deliver now: waiting for its end");
    this.#leaseClock.comeBy(0);
  }

  async #stop(consumer: ActiveConsumer, error: Error): Promise<void> {
    const registration = this.#registered.get(consumer.name);
    if (registration === undefined || this.#active.get(consumer.name) !== consumer) return;
    this.#registered.delete(consumer.name);
    await this.#retire([consumer]);
    registration.onStopped(error);
  }

  #giveUp(name: string, error: Error): void {
    const registration = this.#registered.get(name);
    this.#registered.delete(name);
    registration?.onStopped(error);
  }

  /** Lets handlers finish, records what they have done, and gives the leases back. */
  async #retire(consumers: ActiveConsumer[]): Promise<void> {
    await withinGrace(Promise.all(consumers.map((consumer) => consumer.drain())));
    for (const consumer of consumers) this.#recorder.note(consumer, true);
    await withinGrace(this.#recorder.flush());
    for (const consumer of consumers) {
      consumer.abort();
      this.#active.delete(consumer.name);
    }
    if (consumers.length === 0) return;
    await withinGrace(this.#attempt((client) => releaseLeases(client, this.#tables, consumers)));
  }

  /** Reads what is new once for all, and wakes them. */
  async #readTail(signal: AbortSignal, wait: () => Promise<void>): Promise<void> {
    await this.#startTail(signal);
    while (!signal.aborted) {
      const before = this.#tail.end;
      let hasMore = false;
      try {
        hasMore = await this.#read((client) => this.#tail.readOn(client, this.#tables), signal);
      } catch (error) {
        if (!(error instanceof FeedGapError)) throw error;
        // Each consumer finds out for itself whether it has missed something.
        await this.#startTail(signal);
      }
      if (this.#tail.end !== before) for (const consumer of this.#active.values()) consumer.wake();
      if (!hasMore) await wait();
    }
  }

  async #startTail(signal: AbortSignal): Promise<void> {
    const { lastId } = await this.#read((client) => readPosition(client, this.#tables), signal);
    this.#tail.startAt(lastId);
    for (const consumer of this.#active.values()) consumer.wake();
  }

  async #offerDue(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#dueClock.wait(signal);
      if (signal.aborted) return;
      const consumers = [...this.#active.values()].filter(({ hasWaiting }) => hasWaiting);
      if (consumers.length > 0) await this.#offerDueTo(consumers, signal);
    }
  }

  async #offerDueTo(consumers: ActiveConsumer[], signal: AbortSignal): Promise<void> {
    const recorded = this.#waitingRecorded;
    const names = consumers.map(({ name }) => name);
    const found = await this.#read((client) => findDue(client, this.#tables, { names, limit: maxDue }), signal);
    for (const consumer of consumers) {
      const waiting = found.filter(({ name }) => name === consumer.name);
      if (waiting.length === 0 && recorded === this.#waitingRecorded) consumer.hasWaiting = false;
      const due = waiting.filter(({ dueInMs }) => dueInMs <= 0);
      consumer.offer(due);
      if (due.length > 0) this.#dueClock.comeBy(dueIntervalMs);
      for (const { dueInMs } of waiting) if (dueInMs > 0) this.#dueClock.comeBy(dueInMs);
    }
  }
}

/** Waits for the work, but not for long. */
async function withinGrace(work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  await Promise.race([work, sleep(graceMs, undefined, { signal: over.signal }).catch(() => {})]);
  over.abort();
}

/** Its types are pg's defaults, since handlers use it. */
function createHandlerPool({ database, maxConnections }: Required<DelivererOptions>): pg.Pool {
  const pool = new pg.Pool({
    connectionString: database,
    Client: ServerClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
    application_name: "booking-events-deliver-handlers",
    max: maxConnections,
    connectionTimeoutMillis: 5_000,
    query_timeout: 35_000,
    keepAlive: true,
  });
  // Without listeners, a connection that breaks would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
