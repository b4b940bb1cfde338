import type { Socket } from "node:net";

export const turnBudgetLimits = {
  /** For what one partner has sent, in one turn of the event loop. The last read may exceed it, by about 15 ms. */
  readingMs: 40,
  /** The same while connections wait to be accepted, or while some are held. */
  readingWhileBusyMs: 10,
  /** Of each partner: how many connections are read again after a turn in which they were held. */
  resumedPerTurn: 64,
  /** While connections wait to be accepted, this many turns pass before held ones are read again. */
  turnsWithoutWhileAccepting: 8,
  /** What may have waited longer is too old to be accepted: newer events may have been accepted since. */
  longestWaitMs: 500,
  /** An event whose last byte waited too long is decoded and queued within this time. */
  refusalMs: 1_000,
};

/** A connection, as the budget knows it. */
export interface Reader {
  readonly socket: Socket;
  share: Share;
  isHeld: boolean;
  /** The turn in which something was last read from it, and whose connection it was then. */
  lastTurn: number;
  readFor: Share;
  /** Since when data may be waiting because the connection was held. */
  waitingSinceMs: number | undefined;
  /** How much had been read when that began, or when it was last found that more may be waiting. */
  bytesRead: number;
  lateUntilMs: number;
}

/** The connections of one partner, or of all strangers. */
interface Share {
  partner: string | undefined;
  reading: Set<Reader>;
  /** The first one is read next. Of thousands, each may be closed by itself, so removal must be cheap. */
  held: Set<Reader>;
  /** In the turn with this number. */
  spentMs: number;
  turn: number;
}

/**
 * Shares the turns of the event loop between partners. In one turn, Node reads and parses what has arrived on every
 * connection: thousands of requests, or a megabyte in chunks of one byte, take a second. Everybody waits meanwhile, and
 * the process looks as if it had been frozen.
 *
 * So the time is counted for each partner, and for all strangers together. When it is spent, their connections are held:
 * they are not read until a later turn, a few at a time. Whoever has sent less is read in each turn.
 *
 * This relies on undocumented parts of Node (lib/net.js as of 24.21): a socket's handle stops reading at once, even
 * within a turn, while pausing the socket would be undone by Node's HTTP server. If that changes, turn-budget.test.ts
 * fails.
 */
export class TurnBudget {
  readonly #isAccepting: () => boolean;
  readonly #now: () => number;
  readonly #strangers = createShare(undefined);
  readonly #shares = new Map<string, Share>();
  /** Those with held connections. */
  readonly #holding = new Set<Share>();
  /** Connections that are read again, and from which not everything may have been read that waited. */
  readonly #behind = new Set<Reader>();
  #turn = 0;
  #isTurnCounted = false;
  #turnsWithout = 0;
  /** Whose data is being worked on. */
  #current: Reader | undefined;
  #currentSinceMs = 0;

  /**
   * @param options.isAccepting whether connections may be waiting to be accepted
   * @param options.now a clock in milliseconds that is never set back
   */
  constructor({
    isAccepting = () => false,
    now = () => performance.now(),
  }: { isAccepting?: (() => boolean) | undefined; now?: () => number } = {}) {
    this.#isAccepting = isAccepting;
    this.#now = now;
  }

  /** Adds a connection that has not shown a valid secret. */
  add(socket: Socket): Reader {
    const reader: Reader = {
      socket,
      share: this.#strangers,
      isHeld: false,
      lastTurn: -1,
      readFor: this.#strangers,
      waitingSinceMs: undefined,
      bytesRead: 0,
      lateUntilMs: 0,
    };
    if (this.#holding.has(this.#strangers)) {
      // Otherwise a new one would be read before those that wait, and the next ones would be accepted late.
      this.#stop(reader);
      this.#strangers.held.add(reader);
    } else {
      this.#strangers.reading.add(reader);
    }
    return reader;
  }

  /** Call this when a request on the connection has a valid secret. */
  assign(reader: Reader, partner: string): void {
    if (reader.share.partner === partner) return;
    const { isHeld } = reader;
    this.remove(reader);
    const share = this.#shares.get(partner) ?? createShare(partner);
    this.#shares.set(partner, share);
    reader.share = share;
    if (this.#holding.has(share)) this.#hold(share, [reader]);
    else if (isHeld) this.#resume(share, [reader]);
    else share.reading.add(reader);
  }

  remove(reader: Reader): void {
    const { share } = reader;
    share.reading.delete(reader);
    this.#behind.delete(reader);
    share.held.delete(reader);
    if (share.partner !== undefined && share.reading.size + share.held.size === 0) this.#shares.delete(share.partner);
  }

  /** Call this when something has been read from the connection, before any work is done for it. */
  count(reader: Reader): void {
    const nowMs = this.#now();
    this.#countTurn();
    // Counted only now: after the last read of a turn, the time belongs to other work.
    if (this.#current !== undefined) this.#charge(this.#current, nowMs - this.#currentSinceMs);
    this.#current = reader;
    this.#currentSinceMs = nowMs;
    if (reader.lastTurn !== this.#turn) reader.readFor = reader.share;
    reader.lastTurn = this.#turn;
    if (reader.waitingSinceMs !== undefined) this.#judgeWait(reader, reader.waitingSinceMs, nowMs);
  }

  /** Whether what was read from the connection a moment ago may have waited too long. */
  isLate({ lateUntilMs }: Reader): boolean {
    return lateUntilMs > 0 && this.#now() < lateUntilMs;
  }

  #judgeWait(reader: Reader, sinceMs: number, nowMs: number): void {
    const readBytes = reader.socket.bytesRead - reader.bytesRead;
    // Something else from the same read.
    if (readBytes === 0) return;
    if (nowMs - sinceMs > turnBudgetLimits.longestWaitMs) reader.lateUntilMs = nowMs + turnBudgetLimits.refusalMs;
    reader.bytesRead += readBytes;
    // A read that does not fill the buffer has taken everything that waited.
    if (readBytes < readBufferBytes) this.#stopWaiting(reader);
  }

  #stopWaiting(reader: Reader): void {
    reader.waitingSinceMs = undefined;
    this.#behind.delete(reader);
  }

  /** Before it has shown its partner's secret, a connection was one of a stranger, of which there may be many more. */
  #charge({ share, readFor }: Reader, ms: number): void {
    this.#spend(share, ms);
    if (readFor !== share) this.#spend(readFor, ms);
  }

  #spend(share: Share, ms: number): void {
    share.spentMs = ms + (share.turn === this.#turn ? share.spentMs : 0);
    share.turn = this.#turn;
    if (share.reading.size === 0) return;
    const isBusy = this.#holding.size > 0 || this.#isAccepting();
    const budgetMs = isBusy ? turnBudgetLimits.readingWhileBusyMs : turnBudgetLimits.readingMs;
    if (share.spentMs > budgetMs) this.#hold(share, [...share.reading]);
  }

  /** Those that have been read in this turn are read last. */
  #hold(share: Share, readers: Reader[]): void {
    for (const reader of readers) this.#stop(reader);
    const wasRead = ({ lastTurn }: Reader) => lastTurn === this.#turn;
    share.held = new Set([...readers.filter((reader) => !wasRead(reader)), ...share.held, ...readers.filter(wasRead)]);
    this.#holding.add(share);
  }

  #stop(reader: Reader): void {
    handleOf(reader)?.readStop();
    reader.isHeld = true;
    reader.share.reading.delete(reader);
    this.#behind.delete(reader);
    if (reader.waitingSinceMs !== undefined) return;
    reader.waitingSinceMs = this.#now();
    reader.bytesRead = reader.socket.bytesRead;
  }

  #resume(share: Share, readers: Iterable<Reader>): void {
    for (const reader of readers) {
      share.held.delete(reader);
      reader.isHeld = false;
      share.reading.add(reader);
      this.#behind.add(reader);
      const handle = handleOf(reader);
      // Node itself may have stopped reading, because answers wait to be read.
      if (handle?.reading) handle.readStart();
    }
    if (share.held.size === 0) this.#holding.delete(share);
  }

  #countTurn(): void {
    if (this.#isTurnCounted) return;
    this.#isTurnCounted = true;
    // After the event loop has read from every connection that is not held.
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#isTurnCounted = false;
    this.#current = undefined;
    // The event loop has looked for data on them, and found none.
    for (const reader of this.#behind) if (reader.lastTurn !== this.#turn) this.#stopWaiting(reader);
    this.#turn += 1;
    if (this.#holding.size > 0 && !this.#skipsTurn()) {
      for (const share of this.#holding) this.#resume(share, [...share.held].slice(0, turnBudgetLimits.resumedPerTurn));
    }
    if (this.#holding.size > 0 || this.#behind.size > 0) this.#countTurn();
  }

  /** The event loop accepts one connection in each turn, so most turns must be short while connections wait. */
  #skipsTurn(): boolean {
    if (this.#isAccepting() && this.#turnsWithout > 0) {
      this.#turnsWithout -= 1;
      return true;
    }
    this.#turnsWithout = turnBudgetLimits.turnsWithoutWhileAccepting;
    return false;
  }
}

/** As much as Node's HTTP parser reads at once. */
const readBufferBytes = 65_536;

interface Handle {
  reading: boolean;
  readStart(): void;
  readStop(): void;
}

/** Node does not document it. It is null once the socket is closed. */
function handleOf({ socket }: Reader): Handle | null | undefined {
  return (socket as unknown as { _handle?: Handle | null })._handle;
}

function createShare(partner: string | undefined): Share {
  return { partner, reading: new Set(), held: new Set(), spentMs: 0, turn: -1 };
}
