import { Counter, type Logger, type Registry } from "@booking-events/service";

export interface FreezeWatch {
  /** True: this process was frozen a moment ago, and what it reads now may have waited for it. Ask when it was read. */
  wasFrozen(): boolean;
  stop(): void;
}

export const freezeLimits = {
  tickIntervalMs: 100,
  /**
   * The last tick may be this old. A garbage collection takes less, and no sender gives up so soon. A request may have
   * waited unseen for as long: before its headers were read, and before its body was.
   */
  longestUnnoticedMs: 600,
  /** What waited meanwhile is read within a few turns of the event loop; each turn may take up to the limit above. */
  refusalMs: 1_000,
};

/**
 * Notices that this process did nothing for a while: it was stopped or throttled, its machine was suspended, or it was
 * busy with one thing. Senders may have given up what they sent to it since, sent it again to another ingest, and sent
 * newer events after that. If the old ones were accepted now, they would come after the newer ones.
 *
 * After a freeze the event loop may read what waited before it runs the timers that are due, or after that. So the first
 * request looks how old the last tick is, and so does the next tick.
 */
export function watchFreezes({ logger, metrics }: { logger: Logger; metrics: Registry }): FreezeWatch {
  const freezes = new Counter({
    name: "ingest_freezes_total",
    help: "How often this process did nothing for so long that it refused what had waited meanwhile.",
    registers: [metrics],
  });
  let lastLook = readClocks();
  let refusedUntilMs = 0;

  function findFreeze(): void {
    const now = readClocks();
    // The monotonic clock stands still while a machine is suspended. The other one may be set, which costs a second.
    const frozenMs = Math.max(now.monotonicMs - lastLook.monotonicMs, now.wallMs - lastLook.wallMs);
    if (frozenMs <= freezeLimits.longestUnnoticedMs) return;
    lastLook = now;
    if (now.monotonicMs >= refusedUntilMs) {
      freezes.inc();
      logger.warn({ frozenMs: Math.round(frozenMs) }, "this process was frozen: what waited meanwhile is refused");
    }
    refusedUntilMs = now.monotonicMs + freezeLimits.refusalMs;
  }

  const ticking = setInterval(() => {
    findFreeze();
    lastLook = readClocks();
  }, freezeLimits.tickIntervalMs);

  return {
    wasFrozen() {
      findFreeze();
      return performance.now() < refusedUntilMs;
    },
    stop: () => clearInterval(ticking),
  };
}

function readClocks(): { monotonicMs: number; wallMs: number } {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
