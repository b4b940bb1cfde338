import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@booking-events/runtime";
import { channelOf, withOwnConnection } from "@booking-events/store";
import pg from "pg";

interface FeedWatchOptions {
  databaseUrl: string;
  schema: string;
  /** Asks for the position of the feed's end. */
  readEnd: () => Promise<number>;
  logger: Logger;
}

/** While nobody listens, and in case a notification was lost. */
const pollIntervalMs = 1_000;
const slowPollIntervalMs = 5_000;
const reconnectPauseMs = 1_000;

/** Knows where the feed ends, for all who wait for changes, by one connection that listens. */
export class FeedWatch {
  readonly #options: FeedWatchOptions;
  readonly #closing = new AbortController();
  readonly #waiters = new Set<{ after: number; wake: () => void }>();
  #end = 0;
  #isListening = false;

  constructor(options: FeedWatchOptions) {
    this.#options = options;
    void this.#keepListening();
    void this.#keepPolling();
  }

  /** The last id of the feed that has been heard of. */
  get end(): number {
    return this.#end;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Resolves when the feed goes past an id, the time is over, or the signal aborts. */
  async wait(after: number, limitMs: number, signal: AbortSignal): Promise<void> {
    if (this.#end > after || limitMs <= 0) return;
    const woken = new AbortController();
    const waiter = { after, wake: () => woken.abort() };
    this.#waiters.add(waiter);
    try {
      const ending = AbortSignal.any([woken.signal, signal, this.#closing.signal]);
      await sleep(limitMs, undefined, { signal: ending }).catch(() => {});
    } finally {
      this.#waiters.delete(waiter);
    }
  }

  close(): void {
    this.#closing.abort();
  }

  #moveEnd(id: number): void {
    this.#end = id;
    for (const { after, wake } of this.#waiters) if (id > after) wake();
  }

  async #keepListening(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.#listen();
      } catch (error) {
        if (signal.aborted) return;
        this.#options.logger.debug({ err: error }, "no notifications of changes: polling");
      } finally {
        this.#isListening = false;
      }
      await sleep(reconnectPauseMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Resolves when the connection has ended. */
  #listen(): Promise<void> {
    const { databaseUrl, schema } = this.#options;
    return withOwnConnection(databaseUrl, "booking-events-webhooks (listening)", async (client) => {
      const ended = once(client, "end", { signal: this.#closing.signal });
      // It may reject before it is awaited.
      ended.catch(() => {});
      client.on("notification", ({ payload }) => this.#moveEnd(Number(payload)));
      await client.query(`listen ${pg.escapeIdentifier(channelOf(schema))}`);
      this.#isListening = true;
      // What came while nobody listened.
      await this.#poll();
      await ended;
    });
  }

  async #keepPolling(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(this.#isListening ? slowPollIntervalMs : pollIntervalMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted && this.#waiters.size > 0) await this.#poll();
    }
  }

  /** In an outage, those who wait go on to wait. */
  async #poll(): Promise<void> {
    await this.#options.readEnd().then(
      (id) => this.#moveEnd(id),
      () => {},
    );
  }
}
