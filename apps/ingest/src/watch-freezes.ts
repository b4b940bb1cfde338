import type { Socket } from "node:net";
import { Counter, type Logger, type Registry } from "@booking-events/service";

export interface FreezeWatch {
  /** Of each new connection, when it is accepted. */
  noteConnection(socket: Socket): void;
  /** True: what is read from this connection now may have waited too long. Ask in the turn in which it was read. */
  wasFrozen(socket: Socket): boolean;
  stop(): void;
}

export const freezeLimits = {
  tickIntervalMs: 100,
  /**
   * The last tick may be this old. A garbage collection takes less, and no sender gives up so soon. A request may have
   * waited unseen for as long: before its headers were read, and before its body was.
   */
  longestUnnoticedMs: 600,
  /** What waited on open connections is read within a few turns of the event loop. */
  refusalMs: 1_000,
  /** Node asks for a backlog of 511, and Linux keeps one connection more. */
  maxWaitingConnections: 512,
};

/**
 * Notices that this process did nothing for a while: it was stopped or throttled, its machine was suspended, or it was
 * busy with one thing. Senders may have given up what they sent to it since, sent it again to another ingest, and sent
 * newer events after that. If the old ones were accepted now, they would come after the newer ones.
 *
 * After a freeze the event loop may read what waited before it runs the timers that are due, or after that. So the first
 * request looks how old the last tick is, and so does the next tick.
 *
 * New connections wait longer: libuv accepts one in each turn. How long one has waited nobody tells, but it came after
 * the last turn that found none, and after the one that was accepted as many places before it as can wait.
 */
export function watchFreezes({ logger, metrics }: { logger: Logger; metrics: Registry }): FreezeWatch {
  const freezes = new Counter({
    name: "ingest_freezes_total",
    help: "How often this process did nothing for so long that it refused what had waited meanwhile.",
    registers: [metrics],
  });
  let lastLook = readClocks();
  let refusedUntilMs = Number.NEGATIVE_INFINITY;
  /** No connection that is accepted from now on has waited since before. */
  let noneWaitedAtMs = lastLook.monotonicMs;
  let accepted = 0;
  let isCountingTurns = false;
  /** Connections that may have waited too long, and until when what is read from them may have. */
  const lateUntilMs = new WeakMap<Socket, number>();

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

  function tick(): void {
    findFreeze();
    lastLook = readClocks();
    if (!isCountingTurns) countTurns();
  }

  /** Until no connection is waiting of those that are now. Between two immediates the event loop asks the kernel once. */
  function countTurns(): void {
    isCountingTurns = true;
    const [startedAtMs, acceptedAtStart] = [performance.now(), accepted];
    let [turnAtMs, acceptedBefore] = [startedAtMs, accepted];
    setImmediate(function endTurn() {
      if (accepted === acceptedBefore) noneWaitedAtMs = turnAtMs;
      else if (accepted - acceptedAtStart >= freezeLimits.maxWaitingConnections) noneWaitedAtMs = startedAtMs;
      else {
        [turnAtMs, acceptedBefore] = [performance.now(), accepted];
        setImmediate(endTurn);
        return;
      }
      isCountingTurns = false;
    });
  }

  const ticking = setInterval(tick, freezeLimits.tickIntervalMs);

  return {
    noteConnection(socket) {
      accepted += 1;
      const nowMs = performance.now();
      if (nowMs - noneWaitedAtMs > freezeLimits.longestUnnoticedMs) {
        lateUntilMs.set(socket, nowMs + freezeLimits.refusalMs);
      }
    },
    wasFrozen(socket) {
      findFreeze();
      return performance.now() < Math.max(refusedUntilMs, lateUntilMs.get(socket) ?? refusedUntilMs);
    },
    stop: () => clearInterval(ticking),
  };
}

function readClocks(): { monotonicMs: number; wallMs: number } {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
