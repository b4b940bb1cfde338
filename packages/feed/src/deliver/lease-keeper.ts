import { setTimeout as sleep } from "node:timers/promises";
import type { Queryable } from "@booking-events/store";
import { FeedGapError, ForeignReaderError, ParkedDeliveriesError } from "../errors.ts";
import { type FeedLogger, nameError } from "../logger.ts";
import type { FeedTables } from "../tables.ts";
import type { BatchConsumer, SingleConsumer } from "./consumer-options.ts";
import { hasParked, removeSpent } from "./deliveries.ts";
import type { DeliveryEvent } from "./delivery-event.ts";
import { DueClock } from "./due-clock.ts";
import type { ActiveConsumer } from "./host.ts";
import { LeaseWatch } from "./lease-watch.ts";
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
import type { Place } from "./place.ts";

/** How often to look for a lease that nobody has, and to renew those that are held. */
const standbyIntervalMs = 1_000;
const renewIntervalMs = 3_000;
/** How often to look whether a lease that is held has ended. */
const expiryIntervalMs = 1_000;

/** The process whose leases are kept. */
export interface Leaseholder {
  tables: FeedTables;
  logger: FeedLogger;
  observe: (event: DeliveryEvent) => void;
  connections: () => Queryable;
  /** The consumers that it is to deliver to when it can, by name. */
  registered: ReadonlyMap<string, { options: SingleConsumer | BatchConsumer }>;
  /** Those whose leases it holds. */
  active: ReadonlyMap<string, ActiveConsumer>;
  /** It has got the lease, and can begin. */
  begin: (options: SingleConsumer | BatchConsumer, lease: Lease & { place: Place }) => void;
  /** It still has the lease. */
  renewed: (consumer: ActiveConsumer) => void;
  /** It has the lease no more. */
  lose: (consumer: ActiveConsumer) => void;
  /** Another attempt to get the lease would fail as well. */
  giveUp: (name: string, error: Error) => void;
}

/** Takes leases that nobody has any more, and renews those that the process holds, in one statement for all. */
export class LeaseKeeper {
  readonly #holder: Leaseholder;
  readonly #clock = new DueClock(0);
  #renewAtMs = 0;
  /** Those of which it was said that another process delivers. */
  readonly #standbys = new WeakSet<SingleConsumer | BatchConsumer>();
  readonly #watch = new LeaseWatch();

  constructor(holder: Leaseholder) {
    this.#holder = holder;
  }

  /** A lease may be free. */
  wake(): void {
    this.#clock.comeBy(0);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#keep(signal), this.#loseExpired(signal)]);
  }

  async #keep(signal: AbortSignal): Promise<void> {
    const { active } = this.#holder;
    while (!signal.aborted) {
      await this.#clock.wait(signal);
      const renewing = active.size > 0 && performance.now() >= this.#renewAtMs;
      await this.#attempt(async (client) => {
        if (renewing) await this.#renew(client);
        await this.#takeFree(client);
      });
      this.#clock.comeBy(standbyIntervalMs);
    }
  }

  /** Gives leases back, if PostgreSQL can be asked. */
  release(consumers: ActiveConsumer[]): Promise<void> {
    return this.#attempt((client) => releaseLeases(client, this.#holder.tables, consumers));
  }

  /** Beside renewals, since PostgreSQL may take longer to answer one than a lease lasts. */
  async #loseExpired(signal: AbortSignal): Promise<void> {
    const { active, lose } = this.#holder;
    while (!signal.aborted) {
      for (const consumer of active.values()) if (performance.now() > consumer.validUntilMs) lose(consumer);
      await sleep(expiryIntervalMs, undefined, { signal }).catch(() => {});
    }
  }

  /** What fails is done again the next time. */
  async #attempt(work: (client: Queryable) => Promise<void>): Promise<void> {
    const { connections, logger } = this.#holder;
    try {
      await work(connections());
    } catch (error) {
      logger.warn({ code: nameError(error) }, "could not keep the leases of consumers: trying again");
    }
  }

  async #renew(client: Queryable): Promise<void> {
    const { tables, active, lose, renewed } = this.#holder;
    const consumers = [...active.values()];
    const validUntilMs = performance.now() + leaseMs;
    const held = new Map((await renewLeases(client, tables, consumers)).map((one) => [one.name, one]));
    this.#renewAtMs = performance.now() + renewIntervalMs;
    for (const consumer of consumers) {
      const one = held.get(consumer.name);
      if (one === undefined) {
        lose(consumer);
        continue;
      }
      consumer.validUntilMs = validUntilMs;
      consumer.hasWaiting = one.hasWaiting;
      renewed(consumer);
    }
    const spent = consumers.filter(({ hasSpent }) => hasSpent);
    for (const consumer of spent) consumer.hasSpent = false;
    const names = spent.map(({ name }) => name);
    if (names.length > 0) await removeSpent(client, tables, names);
  }

  async #takeFree(client: Queryable): Promise<void> {
    const { tables, registered, active, giveUp } = this.#holder;
    const wanted = [...registered.values()].flatMap(({ options }) => (active.has(options.name) ? [] : [options]));
    if (wanted.length === 0) return;
    const names = wanted.map(({ name }) => name);
    const readers = new Map((await findReaders(client, tables, names)).map((reader) => [reader.name, reader]));
    const free = this.#watch.look([...readers.values()], performance.now());
    for (const options of wanted) {
      const { name } = options;
      const reader = readers.get(name);
      if (reader === undefined) {
        await addReader(client, tables, options);
        free.push({ name, holder: null, seenAt: "" });
      } else if (reader.owner !== reader.role) giveUp(name, new ForeignReaderError(name, reader.owner, reader.role));
    }
    if (free.length > 0) for (const lease of await takeLeases(client, tables, free)) await this.#begin(client, lease);
    for (const options of wanted) this.#noteStandby(options);
  }

  async #begin(client: Queryable, lease: Lease): Promise<void> {
    const { tables, registered, begin, giveUp } = this.#holder;
    this.#watch.noteOwn(lease);
    const options = registered.get(lease.name)?.options;
    if (options === undefined) return releaseLeases(client, tables, [lease]);
    try {
      const place = lease.place ?? (await placeAgain(client, tables, { ...options, ...lease }));
      if ("handleBatch" in options && (await hasParked(client, tables, lease.name)))
        throw new ParkedDeliveriesError(lease.name);
      // Meanwhile it may have been removed.
      if (registered.get(lease.name)?.options !== options) return await releaseLeases(client, tables, [lease]);
      this.#standbys.delete(options);
      begin(options, { ...lease, place });
    } catch (error) {
      await releaseLeases(client, tables, [lease]);
      if (!(error instanceof FeedGapError || error instanceof ParkedDeliveriesError)) throw error;
      giveUp(lease.name, error);
    }
  }

  #noteStandby(options: SingleConsumer | BatchConsumer): void {
    const { active, registered, observe } = this.#holder;
    const { name } = options;
    if (this.#standbys.has(options) || active.has(name) || !registered.has(name)) return;
    this.#standbys.add(options);
    observe({ type: "standby", name });
  }
}
