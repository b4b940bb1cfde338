import type { Socket } from "node:net";
import { Counter, type Logger, type Registry } from "@booking-events/runtime";
import { AcceptWatch } from "./watch-accepts.ts";

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
 * was suspended, and that connections waited to be accepted ({@link AcceptWatch}). Senders may have given up on their
 * requests, sent them to another ingest, and then sent newer events. If the old requests were accepted now, they would
 * be ordered after the newer ones.
 *
 * After a freeze, the event loop may read waiting data before or after it runs timers that are due. Therefore both the
 * first request and the next tick check the age of the ticks. What is read in one turn arrived after the previous one
 * had polled the kernel. The last tick may be of this turn, so the one before it counts.
 */
export class FreezeWatch {
  readonly #logger: Logger;
  readonly #freezes: Counter;
  readonly #lateConnections: Counter;
  #lastTick = readClocks();
  #tickBefore = this.#lastTick;
  #ticking: NodeJS.Timeout | undefined;
  #refusedUntilMs = Number.NEGATIVE_INFINITY;
  readonly #accepts = new AcceptWatch(() => this.#tickBefore.monotonicMs);
  /** Connections that may have waited too long, and the time until which data read from them is refused. */
  readonly #lateUntilMs = new WeakMap<Socket, number>();

  constructor({ logger, metrics }: { logger: Logger; metrics: Registry }) {
    this.#logger = logger;
    this.#freezes = new Counter({
      name: "ingest_freezes_total",
      help: "Times that this process was frozen for so long that it refused the requests that had waited.",
      registers: [metrics],
    });
    this.#lateConnections = new Counter({
      name: "ingest_late_connections_total",
      help: "Connections that may have waited so long to be accepted that requests on them are refused for some seconds.",
      registers: [metrics],
    });
  }

  /** Call this before the server listens. A slow start keeps no request waiting, so what happened until now is no freeze. */
  begin(): void {
    this.#lastTick = readClocks();
    this.#tickBefore = this.#lastTick;
    this.#ticking = setInterval(() => this.#tick(), freezeLimits.tickIntervalMs);
  }

  stop(): void {
    clearInterval(this.#ticking);
  }

  /** Call this for each new connection when it is accepted. */
  trackConnection(socket: Socket): void {
    this.#findFreeze();
    const waitedMs = this.#accepts.measureWait(socket);
    if (waitedMs === undefined || waitedMs <= freezeLimits.longestAcceptMs) return;
    this.#lateConnections.inc();
    this.#lateUntilMs.set(socket, performance.now() + refusalOnLateConnectionMs);
  }

  /**
   * Returns whether data that is read from this connection now may have waited too long. Call this in the turn of the
   * event loop in which the data was read.
   */
  wasFrozen(socket: Socket): boolean {
    this.#findFreeze();
    return performance.now() < Math.max(this.#refusedUntilMs, this.#lateUntilMs.get(socket) ?? this.#refusedUntilMs);
  }

  /** Whether connections may be waiting to be accepted. */
  isAccepting(): boolean {
    return this.#accepts.isAccepting();
  }

  /** Records time that passed on another clock but not on this process's clock. */
  recordLostTime(lostMs: number): void {
    if (this.#ticking !== undefined) this.#recordFreeze(lostMs, performance.now());
  }

  #tick(): void {
    this.#findFreeze();
    [this.#tickBefore, this.#lastTick] = [this.#lastTick, readClocks()];
  }

  #findFreeze(): void {
    const now = readClocks();
    // The monotonic clock stops while a machine is suspended. The wall clock may be set, which costs a second of
    // refusals.
    const { monotonicMs, wallMs } = this.#tickBefore;
    const frozenMs = Math.max(now.monotonicMs - monotonicMs, now.wallMs - wallMs);
    if (this.#recordFreeze(frozenMs, now.monotonicMs)) [this.#tickBefore, this.#lastTick] = [now, now];
  }

  /** @returns whether the time was long enough to be a freeze */
  #recordFreeze(frozenMs: number, nowMs: number): boolean {
    if (frozenMs <= freezeLimits.longestUnnoticedMs) return false;
    if (nowMs >= this.#refusedUntilMs) {
      this.#freezes.inc();
      this.#logger.warn(
        { frozenMs: Math.round(frozenMs) },
        "this process was frozen: requests that waited are refused",
      );
    }
    this.#refusedUntilMs = nowMs + freezeLimits.refusalMs;
    this.#accepts.recordFreeze(frozenMs);
    return true;
  }
}

function readClocks(): { monotonicMs: number; wallMs: number } {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}
