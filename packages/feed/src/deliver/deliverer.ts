import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createPool, defaultSchema } from "@booking-events/store";
import type pg from "pg";
import { FeedGapError } from "../errors.ts";
import { readPosition } from "../feed-position.ts";
import { consoleLogger, type FeedLogger } from "../logger.ts";
import { type FeedTables, tablesIn } from "../tables.ts";
import { createWakeUps } from "../wake-ups.ts";
import { BatchConsumer } from "./batch-consumer.ts";
import { Consumer } from "./consumer.ts";
import type { BatchConsumer as BatchOptions, ConsumerOptions, SingleConsumer } from "./consumer-options.ts";
import { type Progress, recordProgress } from "./deliveries.ts";
import type { DeliveryEvent } from "./delivery-event.ts";
import { DueOffers } from "./due-offers.ts";
import { Finder } from "./finder.ts";
import { createHandlerPool } from "./handler-pool.ts";
import type { ActiveConsumer, Host } from "./host.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { Lease } from "./leases.ts";
import type { Place } from "./place.ts";
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
}

/** How long handlers may go on after the signal has aborted. */
const graceMs = 5_000;
/**
 * How long PostgreSQL may then take to record what they did, to give leases back, and to end connections. In all, the end
 * takes less than the 10 s after which Docker kills a process.
 */
const recordingMs = 2_000;
const partingMs = 1_000;
/** For the queries of all consumers. */
const ownConnections = 3;
/**
 * Hands the changes of the feed to consumers. They share the connections and the queries, so one that has nothing to do
 * costs next to nothing. Any number of processes may do so for the same names: one at a time is active for each, and
 * another takes over some 11 seconds after its death.
 */
export class Deliverer {
  readonly #options: Required<DelivererOptions>;
  readonly #tables: FeedTables;
  readonly #registered = new Map<string, Registration>();
  readonly #active = new Map<string, ActiveConsumer>();
  readonly #tail = new Tail();
  readonly #leases: LeaseKeeper;
  readonly #offers: DueOffers;
  readonly #recorder: Recorder;
  readonly #finder: Finder;
  readonly #handlerPool: pg.Pool;
  readonly #ending = new AbortController();
  /** Breaks the connections that are left. */
  readonly #closing = new AbortController();
  #pool: pg.Pool | undefined;

  constructor(options: DelivererOptions) {
    const defaults = { schema: defaultSchema, maxConnections: 10, pollIntervalMs: 1_000, observe: () => {} };
    this.#options = { ...defaults, listenUrl: options.database, logger: consoleLogger, ...options };
    this.#tables = tablesIn(this.#options.schema);
    this.#recorder = new Recorder(
      (progress) => this.#record(progress),
      (consumer) => this.#lose(consumer),
    );
    this.#finder = new Finder((wanted) => this.#read((pool) => readDeliveries(pool, this.#tables, wanted)));
    this.#handlerPool = createHandlerPool({ ...this.#options, signal: this.#closing.signal });
    this.#leases = this.#keepLeases();
    this.#offers = new DueOffers({
      tables: this.#tables,
      active: this.#active,
      read: (work, signal) => this.#read(work, signal),
    });
  }

  /**
   * Delivers to a consumer from now on, or once the deliverer runs.
   *
   * @param options.onStopped called when the consumer can't go on: with the `StopDelivering` that its handler has thrown, a
   *   `FeedGapError`, a `ForeignReaderError`, or a `ParkedDeliveriesError`. It has been removed then
   * @throws TypeError when options are wrong, or the name is in use
   */
  add({ onStopped, ...options }: ConsumerOptions & { onStopped: (error: Error) => void }): void {
    const resolved = resolveOptions(options);
    if (this.#registered.has(resolved.name)) throw new TypeError(`There is a consumer ${resolved.name} already.`);
    this.#registered.set(resolved.name, { options: resolved, onStopped });
    this.#leases.wake();
  }

  /** Ends delivering to a consumer. Its handlers have 5 s to finish. */
  async remove(name: string): Promise<void> {
    this.#registered.delete(name);
    const consumer = this.#active.get(name);
    if (consumer !== undefined) await this.#retire([consumer]);
  }

  /**
   * Delivers until the signal aborts. Handlers then have 5 s to finish, and what they still do in their transaction
   * fails. Can be called once.
   *
   * @returns less than 10 s after the signal has aborted, whatever handlers and PostgreSQL do
   */
  async run(signal: AbortSignal): Promise<void> {
    const { database, schema, listenUrl, logger, pollIntervalMs } = this.#options;
    const applicationName = "booking-events-deliver";
    const pool = createPool({
      databaseUrl: database,
      schema,
      applicationName,
      maxConnections: ownConnections,
      onError: () => {},
      signal: this.#closing.signal,
    });
    this.#pool = pool;
    const failed = new AbortController();
    const ending = AbortSignal.any([signal, failed.signal]);
    const wakeUps = createWakeUps({ name: applicationName, listenUrl, schema, logger, signal: ending });
    // Without one of them, the others would go on as if nothing were wrong.
    const orFail = (loop: Promise<void>) => loop.catch((error) => failed.abort(error));
    const loops = Promise.all([
      orFail(this.#leases.run(ending)),
      orFail(this.#readTail(ending, () => wakeUps.wait(pollIntervalMs))),
      orFail(this.#offers.run(ending)),
    ]);
    if (!ending.aborted) await once(ending, "abort");
    // Leases that are being taken are given back.
    this.#registered.clear();
    await this.#retire([...this.#active.values()], loops);
    this.#ending.abort();
    await isDoneWithin(partingMs, Promise.all([pool.end(), this.#handlerPool.end()]));
    this.#closing.abort();
    // What a loop throws when it is told to end says nothing.
    if (!signal.aborted) failed.signal.throwIfAborted();
  }

  #keepLeases(): LeaseKeeper {
    const { logger, observe } = this.#options;
    return new LeaseKeeper({
      tables: this.#tables,
      logger,
      observe,
      connections: () => this.#connections(),
      registered: this.#registered,
      active: this.#active,
      begin: (options, lease) => this.#begin(options, lease),
      renewed: (consumer) => {
        this.#recorder.note(consumer, false);
        if (consumer.hasWaiting) this.#offers.look();
      },
      lose: (consumer) => this.#lose(consumer),
      giveUp: (name, error) => this.#giveUp(name, error),
    });
  }

  #begin(options: SingleConsumer | BatchOptions, lease: Lease & { place: Place }): void {
    const consumer =
      "handle" in options
        ? new Consumer(options, lease, this.#host())
        : new BatchConsumer(options, lease, this.#host());
    this.#active.set(lease.name, consumer);
    this.#options.observe({ type: "active", name: lease.name });
    this.#offers.look();
    consumer.wake();
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
      find: (wanted, options) => this.#finder.find(wanted, options),
      noteProgress: (consumer, isUrgent) => this.#recorder.note(consumer, isUrgent),
      lookForDue: (consumer) => this.#offers.noteDue(consumer),
      lose: (consumer) => this.#lose(consumer),
      stop: (consumer, error) => void this.#stop(consumer, error),
    };
  }

  #connections(): pg.Pool {
    if (this.#pool === undefined) throw new Error("The deliverer does not run.");
    return this.#pool;
  }

  #read<Result>(work: (pool: pg.Pool) => Promise<Result>, signal: AbortSignal = this.#ending.signal): Promise<Result> {
    return untilDone(() => work(this.#connections()), {
      what: "read or record deliveries",
      logger: this.#options.logger,
      signal,
      isFinal: (error) => error instanceof FeedGapError,
    });
  }

  async #record(progress: Progress[]): Promise<Progress[]> {
    const held = await this.#read((client) => recordProgress(client, this.#tables, progress));
    this.#offers.noteRecorded(progress);
    return held;
  }

  #lose(consumer: ActiveConsumer): void {
    if (this.#active.get(consumer.name) !== consumer) return;
    this.#active.delete(consumer.name);
    consumer.abort();
    this.#options.logger.warn({ name: consumer.name }, "another process may deliver now: waiting for its end");
    this.#leases.wake();
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

  /**
   * Lets handlers finish, records what they have done, and gives the leases back.
   *
   * @param others what may go on as long as handlers
   */
  async #retire(consumers: ActiveConsumer[], others?: Promise<unknown>): Promise<void> {
    await isDoneWithin(graceMs, Promise.all([others, ...consumers.map((consumer) => consumer.drain())]));
    for (const consumer of consumers) this.#recorder.note(consumer, true);
    const isRecorded = await isDoneWithin(recordingMs, this.#recorder.flush());
    for (const consumer of consumers) {
      consumer.abort();
      this.#active.delete(consumer.name);
    }
    if (consumers.length === 0 || !isRecorded) return;
    await isDoneWithin(partingMs, this.#leases.release(consumers));
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
}

/** Waits for the work, but not for longer than the limit. */
async function isDoneWithin(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  const limit = sleep(limitMs, false, { signal: over.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), limit]);
  } finally {
    over.abort();
  }
}
