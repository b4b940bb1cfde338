import type { Logger } from "@booking-events/runtime";

/** Each of the events is delivered again every one to two minutes. */
const silenceAfterMs = 3 * 60_000;
const logEveryMs = 60_000;

/** Logs that events wait for a later release, once a minute at most, however many there are. */
export class LaterVersions {
  readonly #logger: Logger;
  readonly #now: () => number;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #notedAtMs = Number.NEGATIVE_INFINITY;
  #deliveries = 0;

  constructor(logger: Logger, now: () => number = Date.now) {
    this.#logger = logger;
    this.#now = now;
  }

  /** Notes a delivery of an event that only a later release can read. */
  note(eventId: string): void {
    this.#notedAtMs = this.#now();
    this.#deliveries += 1;
    if (this.#notedAtMs - this.#loggedAtMs < logEveryMs) return;
    const deliveries = this.#deliveries;
    this.#logger.error({ eventId, deliveries }, "events wait for a worker of the later release that accepted them");
    this.#loggedAtMs = this.#notedAtMs;
    this.#deliveries = 0;
  }

  findWarnings(): string[] {
    return this.#now() - this.#notedAtMs < silenceAfterMs
      ? ["Some events can be read by a later release only. Run a worker of that release."]
      : [];
  }
}
