import type { Socket } from "node:net";
import { Counter, type Logger, type Registry } from "@booking-events/runtime";

export interface FreezeWatch {
  /** Call this for each new connection when it is accepted. */
  trackConnection(socket: Socket): void;
  /**
   * Returns whether data that is read from this connection now may have waited too long. Call this in the turn of the
   * event loop in which the data was read.
   */
  wasFrozen(socket: Socket): boolean;
  /** Records time that passed on another clock but not on this process's clock. */
  recordLostTime(lostMs: number): void;
  stop(): void;
}

export const freezeLimits = {
  tickIntervalMs: 100,
  /**
   * The maximum age of the last tick. Garbage collections are shorter, and no sender gives up so soon. A request may
   * wait this long unnoticed before its headers are read, and again before its body is read.
   */
  longestUnnoticedMs: 600,
  /** Data that waited on open connections is read within a few turns of the event loop. */
  refusalMs: 1_000,
  /**
   * Connections that wait to be accepted; Linux keeps one more than the backlog. Clients that find the backlog full try
   * again after seconds, with data that they sent long before. Linux limits the backlog to 4,096 by default
   * (somaxconn).
   */
  backlog: 4_095,
};

/**
 * Detects that this process did nothing for a while because it was stopped, throttled or busy, or because its machine
 * was suspended. Senders may have given up on their requests, sent them to another ingest, and then sent newer events.
 * If the old requests were accepted now, they would be ordered after the newer ones.
 *
 * After a freeze, the event loop may read waiting data before or after it runs timers that are due. Therefore both the
 * first request and the next tick check the age of the last tick.
 *
 * New connections wait longer because libuv accepts one per turn of the event loop. All connections that waited during
 * the freeze have been accepted after the first turn without a new one.
 */
export function watchFreezes({ logger, metrics }: { logger: Logger; metrics: Registry }): FreezeWatch {
  const freezes = new Counter({
    name: "ingest_freezes_total",
    help: "Times that this process was frozen for so long that it refused the requests that had waited.",
    registers: [metrics],
  });
  let lastCheck = readClocks();
  let refusedUntilMs = Number.NEGATIVE_INFINITY;
  let freezeCount = 0;
  let accepted = 0;
  /** At most this many of the next accepted connections have waited since the last freeze. */
  let mayHaveWaited = 0;
  /** Connections that may have waited too long, and the time until which data read from them is refused. */
  const lateUntilMs = new WeakMap<Socket, number>();

  function findFreeze(): void {
    const now = readClocks();
    // The monotonic clock stops while a machine is suspended. The wall clock may be set, which costs a second of
    // refusals.
    const frozenMs = Math.max(now.monotonicMs - lastCheck.monotonicMs, now.wallMs - lastCheck.wallMs);
    if (recordFreeze(frozenMs, now.monotonicMs)) lastCheck = now;
  }

  /** @returns whether the time was long enough to be a freeze */
  function recordFreeze(frozenMs: number, nowMs: number): boolean {
    if (frozenMs <= freezeLimits.longestUnnoticedMs) return false;
    if (nowMs >= refusedUntilMs) {
      freezes.inc();
      logger.warn({ frozenMs: Math.round(frozenMs) }, "this process was frozen: requests that waited are refused");
    }
    refusedUntilMs = nowMs + freezeLimits.refusalMs;
    freezeCount += 1;
    const thisFreeze = freezeCount;
    setImmediate(() => endTurn(thisFreeze));
    mayHaveWaited = freezeLimits.backlog + 1;
    return true;
  }

  /** The event loop polls the kernel once between two immediates. */
  function endTurn(freeze: number): void {
    const acceptedBefore = accepted;
    setImmediate(() => {
      if (freeze !== freezeCount) return;
      if (accepted === acceptedBefore) mayHaveWaited = 0;
      if (mayHaveWaited > 0) endTurn(freeze);
    });
  }

  const ticking = setInterval(() => {
    findFreeze();
    lastCheck = readClocks();
  }, freezeLimits.tickIntervalMs);

  return {
    trackConnection(socket) {
      findFreeze();
      accepted += 1;
      if (mayHaveWaited === 0) return;
      mayHaveWaited -= 1;
      lateUntilMs.set(socket, performance.now() + freezeLimits.refusalMs);
    },
    wasFrozen(socket) {
      findFreeze();
      return performance.now() < Math.max(refusedUntilMs, lateUntilMs.get(socket) ?? refusedUntilMs);
    },
    recordLostTime: (lostMs) => void recordFreeze(lostMs, performance.now()),
    stop: () => clearInterval(ticking),
  };
}

function readClocks(): { monotonicMs: number; wallMs: number } {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
