import type { Logger } from "@booking-events/runtime";

/** Each of the events is delivered again every one to two minutes. */
const silenceAfterMs = 3 * 60_000;
const logEveryMs = 60_000;

export interface LaterVersions {
  /** Notes a delivery of an event that only a later release can read. */
  note(eventId: string): void;
  /** Says what an operator should do while there are such events. */
  findWarnings(): string[];
}

/** Logs that events wait for a later release, once a minute at most, however many there are. */
export function watchLaterVersions(options: { logger: Logger; now?: () => number }): LaterVersions {
  const { logger, now = Date.now } = options;
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  let notedAtMs = Number.NEGATIVE_INFINITY;
  let deliveries = 0;
  return {
    note(eventId) {
      notedAtMs = now();
      deliveries += 1;
      if (notedAtMs - loggedAtMs < logEveryMs) return;
      logger.error({ eventId, deliveries }, "events wait for a worker of the later release that accepted them");
      loggedAtMs = notedAtMs;
      deliveries = 0;
    },
    findWarnings: () =>
      now() - notedAtMs < silenceAfterMs
        ? ["Some events can be read by a later release only. Run a worker of that release."]
        : [],
  };
}
