import type { Socket } from "node:net";
import { Counter, type Logger, type Registry } from "@booking-events/runtime";

export interface FreezeWatch {
  /** Of each new connection, when it is accepted. */
  noteConnection(socket: Socket): void;
  /** True: what is read from this connection now may have waited too long. Ask in the turn in which it was read. */
  wasFrozen(socket: Socket): boolean;
  /** Of how much time another clock showed to have gone by, and ours did not. */
  noteTimeLost(lostMs: number): void;
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
  /**
   * Connections that wait to be accepted: Linux keeps one more than the backlog. Those that find no room there try again
   * after seconds, with what they have sent long ago. Linux itself allows 4,096 unless it is told otherwise (somaxconn).
   */
  backlog: 4_095,
};

/**
 * Notices that this process did nothing for a while: it was stopped or throttled, its machine was suspended, or it was
 * busy with one thing. Senders may have given up what they sent to it since, sent it again to another ingest, and sent
 * newer events after that. If the old ones were accepted now, they would come after the newer ones.
 *
 * After a freeze the event loop may read what waited before it runs the timers that are due, or after that. So the first
 * request looks how old the last tick is, and so does the next tick.
 *
 * New connections wait longer: libuv accepts one in each turn. Those that waited while this process was frozen are at the
 * end with the first turn that finds none.
 */
export function watchFreezes({ logger, metrics }: { logger: Logger; metrics: Registry }): FreezeWatch {
  const freezes = new Counter({
    name: "ingest_freezes_total",
    help: "How often this process did nothing for so long that it refused what had waited meanwhile.",
    registers: [metrics],
  });
  let lastLook = readClocks();
  let refusedUntilMs = Number.NEGATIVE_INFINITY;
  let freezeCount = 0;
  let accepted = 0;
  /** Of the connections that are accepted next, these have waited since the last freeze, at the most. */
  let mayHaveWaited = 0;
  /** Connections that may have waited too long, and until when what is read from them may have. */
  const lateUntilMs = new WeakMap<Socket, number>();

  function findFreeze(): void {
    const now = readClocks();
    // The monotonic clock stands still while a machine is suspended. The other one may be set, which costs a second.
    const frozenMs = Math.max(now.monotonicMs - lastLook.monotonicMs, now.wallMs - lastLook.wallMs);
    if (noteFreeze(frozenMs, now.monotonicMs)) lastLook = now;
  }

  /** @returns whether it was long enough to be one */
  function noteFreeze(frozenMs: number, nowMs: number): boolean {
    if (frozenMs <= freezeLimits.longestUnnoticedMs) return false;
    if (nowMs >= refusedUntilMs) {
      freezes.inc();
      logger.warn({ frozenMs: Math.round(frozenMs) }, "this process was frozen: what waited meanwhile is refused");
    }
    refusedUntilMs = nowMs + freezeLimits.refusalMs;
    freezeCount += 1;
    const thisFreeze = freezeCount;
    setImmediate(() => endTurn(thisFreeze));
    mayHaveWaited = freezeLimits.backlog + 1;
    return true;
  }

  /** Between two immediates, the event loop asks the kernel once what there is. */
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
    lastLook = readClocks();
  }, freezeLimits.tickIntervalMs);

  return {
    noteConnection(socket) {
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
    noteTimeLost: (lostMs) => void noteFreeze(lostMs, performance.now()),
    stop: () => clearInterval(ticking),
  };
}

function readClocks(): { monotonicMs: number; wallMs: number } {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
