import { setTimeout as sleep } from "node:timers/promises";
import { type Logger, repeat } from "@booking-events/runtime";
import { channelOf } from "@booking-events/store";
import { listenTo } from "../listen-to.ts";

interface FeedWatchOptions {
  databaseUrl: string;
  schema: string;
  /** Asks for the position of the feed's end. */
  readEnd: () => Promise<number>;
  logger: Logger;
}

/** In case nobody listens, or a notification was lost. */
const pollIntervalMs = 5_000;

/** Knows where the feed ends, for all who wait for changes, by one connection that listens. */
export class FeedWatch {
  readonly #readEnd: FeedWatchOptions["readEnd"];
  readonly #closing = new AbortController();
  readonly #waiters = new Set<{ after: number; wake: () => void }>();
  #end = 0;

  constructor({ readEnd, schema, ...connection }: FeedWatchOptions) {
    this.#readEnd = readEnd;
    const { signal } = this.#closing;
    const channel = channelOf(schema);
    const onNotification = (id: string | null) => (id === null ? void this.#poll() : this.#moveEnd(Number(id)));
    listenTo({ ...connection, channel, onNotification, signal });
    void repeat(async () => void (this.#waiters.size > 0 && (await this.#poll())), pollIntervalMs, signal);
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

  /** In an outage, those who wait go on to wait. */
  async #poll(): Promise<void> {
    await this.#readEnd().then(
      (id) => this.#moveEnd(id),
      () => {},
    );
  }
}
