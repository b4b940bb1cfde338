import type { Socket } from "node:net";
import { Counter, type Logger, type Registry } from "@booking-events/runtime";
import { watchAccepts } from "./watch-accepts.ts";

export interface FreezeWatch {
  /** Call this before the server listens. A slow start keeps no request waiting, so what happened until now is no freeze. */
  begin(): void;
  /** Call this for each new connection when it is accepted. */
  trackConnection(socket: Socket): void;
  /**
   * Returns whether data that is read from this connection now may have waited too long. Call this in the turn of the
   * event loop in which the data was read.
   */
  wasFrozen(socket: Socket): boolean;
  /** Whether connections may be waiting to be accepted. */
  isAccepting(): boolean;
  /** Records time that passed on another clock but not on this process's clock. */
  recordLostTime(lostMs: number): void;
  stop(): void;
}

export const freezeLimits = {
  tickIntervalMs: 50,
  /**
   * The maximum age of the last tick but one. Garbage collections are shorter, and no sender gives up so soon. A request
   * may wait this long unnoticed before its headers are read, and again before its body is read.
   */
  longestUnnoticedMs: 650,
  /** How long a connection may wait until it is accepted, before that. */
  longestAcceptMs: 1_200,
  /** Data that waited on open connections is read within a few turns of the event loop. */
  refusalMs: 1_000,
  /**
   * Connections that wait to be accepted; Linux keeps one more than the backlog. Clients that find the backlog full try
   * again after seconds, with data that they sent long before. Linux limits the backlog to 4,096 by default
   * (somaxconn).
   */
  backlog: 4_095,
};

/** Its data is read in the next turn, which may begin and proceed as slowly as goes unnoticed. */
const refusalOnLateConnectionMs = freezeLimits.refusalMs + 2 * freezeLimits.longestUnnoticedMs;

/**
 * Detects that this process did nothing for a while because it was stopped, throttled or busy, or because its machine
 * was suspended, and that connections waited to be accepted ({@link watchAccepts}). Senders may have given up on their
 * requests, sent them to another ingest, and then sent newer events. If the old requests were accepted now, they would
 * be ordered after the newer ones.
 *
 * After a freeze, the event loop may read waiting data before or after it runs timers that are due. Therefore both the
 * first request and the next tick check the age of the ticks. What is read in one turn arrived after the previous one
 * had polled the kernel. The last tick may be of this turn, so the one before it counts.
 */
export function watchFreezes({ logger, metrics }: { logger: Logger; metrics: Registry }): FreezeWatch {
  const freezes = new Counter({
    name: "ingest_freezes_total",
    help: "Times that this process was frozen for so long that it refused the requests that had waited.",
    registers: [metrics],
  });
  const lateConnections = new Counter({
    name: "ingest_late_connections_total",
    help: "Connections that may have waited so long to be accepted that requests on them are refused for some seconds.",
    registers: [metrics],
  });
  let lastTick = readClocks();
  let tickBefore = lastTick;
  let refusedUntilMs = Number.NEGATIVE_INFINITY;
  const accepts = watchAccepts(() => tickBefore.monotonicMs);
  /** Connections that may have waited too long, and the time until which data read from them is refused. */
  const lateUntilMs = new WeakMap<Socket, number>();

  function findFreeze(): void {
    const now = readClocks();
    // The monotonic clock stops while a machine is suspended. The wall clock may be set, which costs a second of
    // refusals.
    const frozenMs = Math.max(now.monotonicMs - tickBefore.monotonicMs, now.wallMs - tickBefore.wallMs);
    if (recordFreeze(frozenMs, now.monotonicMs)) [tickBefore, lastTick] = [now, now];
  }

  /** @returns whether the time was long enough to be a freeze */
  function recordFreeze(frozenMs: number, nowMs: number): boolean {
    if (frozenMs <= freezeLimits.longestUnnoticedMs) return false;
    if (nowMs >= refusedUntilMs) {
      freezes.inc();
      logger.warn({ frozenMs: Math.round(frozenMs) }, "this process was frozen: requests that waited are refused");
    }
    refusedUntilMs = nowMs + freezeLimits.refusalMs;
    accepts.recordFreeze(frozenMs);
    return true;
  }

  function tick(): void {
    findFreeze();
    [tickBefore, lastTick] = [lastTick, readClocks()];
  }

  let ticking: NodeJS.Timeout | undefined;

  return {
    begin() {
      lastTick = readClocks();
      tickBefore = lastTick;
      ticking = setInterval(tick, freezeLimits.tickIntervalMs);
    },
    trackConnection(socket) {
      findFreeze();
      const waitedMs = accepts.measureWait(socket);
      if (waitedMs === undefined || waitedMs <= freezeLimits.longestAcceptMs) return;
      lateConnections.inc();
      lateUntilMs.set(socket, performance.now() + refusalOnLateConnectionMs);
    },
    wasFrozen(socket) {
      findFreeze();
      return performance.now() < Math.max(refusedUntilMs, lateUntilMs.get(socket) ?? refusedUntilMs);
    },
    isAccepting: accepts.isAccepting,
    recordLostTime(lostMs) {
      if (ticking !== undefined) recordFreeze(lostMs, performance.now());
    },
    stop: () => clearInterval(ticking),
  };
}

function readClocks(): { monotonicMs: number; wallMs: number } {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
