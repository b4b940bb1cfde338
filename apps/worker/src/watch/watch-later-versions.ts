import type { Logger } from "@booking-events/runtime";

/** Each of the events comes again every one to two minutes. */
const silenceAfterMs = 3 * 60_000;
const sayEveryMs = 60_000;

export interface LaterVersions {
  /** Notes a delivery of an event that only a later release can read. */
  note(eventId: string): void;
  /** What an operator should do, while there are such events. */
  findWarnings(): string[];
}

/** Says that events wait for a later release: once a minute at most, however many there are. */
export function watchLaterVersions(options: { logger: Logger; now?: () => number }): LaterVersions {
  const { logger, now = Date.now } = options;
  let saidAtMs = Number.NEGATIVE_INFINITY;
  let notedAtMs = Number.NEGATIVE_INFINITY;
  let deliveries = 0;
  return {
    note(eventId) {
      notedAtMs = now();
      deliveries += 1;
      if (notedAtMs - saidAtMs < sayEveryMs) return;
      logger.error({ eventId, deliveries }, "events wait for a worker of the later release that has accepted them");
      saidAtMs = notedAtMs;
      deliveries = 0;
    },
    findWarnings: () =>
      now() - notedAtMs < silenceAfterMs ? ["Events wait that only a later release can read: run its worker."] : [],
  };
}
