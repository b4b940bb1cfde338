import { setTimeout as sleep } from "node:timers/promises";
import type { ConsoleContext } from "../context.ts";
import { type Overview, readOverview } from "./read-overview.ts";

const intervalMs = 5_000;
/** Browsers ask again by themselves, and then the login is checked again. */
const maxListeningMs = 15 * 60_000;
const maxListeners = 200;

/**
 * Reads the overview for all who look at it: every five seconds while anybody does, and once for those who come within
 * that time. So what it costs does not depend on how many look.
 */
export class LiveOverview {
  readonly #context: ConsoleContext;
  readonly #render: (overview: Overview) => string;
  readonly #listeners = new Set<(html: string) => void>();
  #latest: { overview: Promise<Overview>; beganAtMs: number } | undefined;
  #isRunning = false;

  /** @param render what listeners get */
  constructor(context: ConsoleContext, render: (overview: Overview) => string) {
    this.#context = context;
    this.#render = render;
  }

  /** At most five seconds old. */
  read(): Promise<Overview> {
    const nowMs = performance.now();
    if (this.#latest === undefined || nowMs - this.#latest.beganAtMs >= intervalMs) {
      const overview = readOverview({ ...this.#context.operations, notify: () => {} });
      this.#latest = { overview, beganAtMs: nowMs };
      // What failed is tried again by whoever asks next.
      overview.catch(() => {
        this.#latest = undefined;
      });
    }
    return this.#latest.overview;
  }

  /** @yields the overview each time that it has been read again, rendered; nothing if too many listen already */
  async *follow(ended: AbortSignal): AsyncGenerator<string> {
    if (this.#listeners.size >= maxListeners) return;
    const signal = AbortSignal.any([ended, this.#context.stopping, AbortSignal.timeout(maxListeningMs)]);
    let next = Promise.withResolvers<string | null>();
    const listener = (html: string) => next.resolve(html);
    const end = () => next.resolve(null);
    this.#listeners.add(listener);
    signal.addEventListener("abort", end);
    void this.#run();
    try {
      for (;;) {
        const html = await next.promise;
        if (html === null || signal.aborted) return;
        next = Promise.withResolvers();
        yield html;
      }
    } finally {
      this.#listeners.delete(listener);
      signal.removeEventListener("abort", end);
    }
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#listeners.size > 0) {
      await sleep(intervalMs, undefined, { ref: false });
      if (this.#listeners.size > 0) await this.#tell();
    }
    this.#isRunning = false;
  }

  async #tell(): Promise<void> {
    try {
      const html = this.#render(await this.read());
      for (const listener of this.#listeners) listener(html);
    } catch (error) {
      this.#context.logger.error({ err: error }, "the overview could not be read");
    }
  }
}
