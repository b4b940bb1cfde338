import { formatAddress, type RedisAddress, withDeadline } from "@booking-events/runtime";
import { Redis } from "ioredis";
import { ofAskedServer } from "./describe-redis-fault.ts";
import { type Directory, NoPrimary } from "./directory.ts";

/** How long servers may take to say where the primary is. */
export const askDeadlineMs = 1_000;

export interface Answers<View> {
  views: View[];
  /** Why others do not. */
  reason: unknown;
}

/** Asks the servers of a {@link Directory}. A connection is kept while its server answers. */
export class ServersAsked<View> {
  readonly #directory: Directory<View>;
  readonly #connections = new Map<string, Redis>();
  /** Why a connection failed; a command's rejection only says that the connection is closed. */
  readonly #reasons = new WeakMap<Redis, Error>();

  constructor(directory: Directory<View>) {
    this.#directory = directory;
  }

  /**
   * Asks all servers at once, and those that they name.
   *
   * @param patience.enough after so many answers, the others get `graceMs`
   */
  async askAll(
    addresses: readonly RedisAddress[],
    { enough, graceMs }: { enough: number; graceMs: number },
  ): Promise<Answers<View>> {
    const views: View[] = [];
    const asked = new Set<string>();
    let reason: unknown = new NoPrimary("No server answers.");
    let pending = 0;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const deadline = setTimeout(resolve, askDeadlineMs);

    const askSome = (some: readonly RedisAddress[]) => {
      for (const address of some) {
        if (asked.has(formatAddress(address))) continue;
        asked.add(formatAddress(address));
        pending += 1;
        void askAndLearn(address);
      }
    };
    const askAndLearn = async (address: RedisAddress) => {
      try {
        const view = await this.#ask(address);
        if (views.push(view) === enough) setTimeout(resolve, graceMs).unref();
        askSome(this.#directory.listOthers([view]));
      } catch (error) {
        reason = error;
      }
      pending -= 1;
      if (pending === 0) resolve();
    };

    askSome(addresses);
    await done;
    clearTimeout(deadline);
    return { views: [...views], reason };
  }

  /** Closes the connections to all other servers. */
  keepOnly(addresses: readonly RedisAddress[]): void {
    const kept = new Set(addresses.map(formatAddress));
    for (const [key, redis] of this.#connections) {
      if (kept.has(key)) continue;
      redis.disconnect();
      this.#connections.delete(key);
    }
  }

  async #ask(address: RedisAddress): Promise<View> {
    const key = formatAddress(address);
    const known = this.#connections.get(key);
    const redis = known === undefined || known.status === "end" ? this.#connect(address) : known;
    this.#connections.set(key, redis);
    try {
      return await withDeadline(this.#directory.ask(redis, address), askDeadlineMs);
    } catch (error) {
      redis.disconnect();
      // Another question to the same server may have failed before, and the next one has opened a new connection.
      if (this.#connections.get(key) === redis) this.#connections.delete(key);
      const reason = this.#reasons.get(redis) ?? error;
      if (reason instanceof Error) ofAskedServer.add(reason);
      throw reason;
    }
  }

  #connect({ host, port }: RedisAddress): Redis {
    const redis = new Redis({
      host,
      port,
      ...this.#directory.access,
      connectionName: "booking-events-primaries",
      connectTimeout: askDeadlineMs,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    // A process that has nothing else to do ends.
    redis.on("connect", () => redis.stream.unref());
    return redis.on("error", (error) => void this.#reasons.set(redis, error));
  }
}
