import { connect, type Socket } from "node:net";

/**
 * While it is not known that no connection has waited for so long, the process connects to itself this often. The first
 * connection after a pause may have waited since a time that is about 100 ms ago, and needs no such measurement.
 */
const probeIntervalMs = 200;
/** Each takes a turn of the event loop, so these are spread over the time that connections wait. */
const maxProbes = 5;
/** A connection to oneself is made at once, unless the backlog is full. Then the kernel would try again after seconds. */
const longestConnectMs = 500;

/**
 * Bounds how long connections waited to be accepted. A process that gets little time of its CPU accepts them late,
 * even if it is never frozen: libuv accepts one in each turn of the event loop. The kernel does not tell when a
 * connection was made, but it returns the oldest one first. So after a turn without a new connection, none was waiting.
 * While each turn has one, the process connects to itself now and then: when that connection is accepted, all those
 * that are older have been accepted.
 */
export class AcceptWatch {
  readonly #lastPollMs: () => number;
  /** Counts connections and freezes: after a turn without either, no connection is waiting. */
  #happened = 0;
  #isBusy = false;
  /** While busy: all connections that were made before this time have been accepted. */
  #acceptedUpToMs = 0;
  /** Connections of this process to itself that have not been accepted yet, and when they were begun. */
  readonly #probes = new Map<Socket, number>();

  /** @param lastPollMs a time before the previous poll of the event loop, by `performance.now()` */
  constructor(lastPollMs: () => number) {
    this.#lastPollMs = lastPollMs;
  }

  /**
   * Call this for each new connection when it is accepted.
   *
   * @returns how long it may have waited to be accepted, in milliseconds; undefined if the watch itself has opened it
   */
  measureWait(socket: Socket): number | undefined {
    this.#follow();
    for (const [client, startedAtMs] of this.#probes) {
      if (!isOtherEnd(socket, client)) continue;
      this.#acceptedUpToMs = Math.max(this.#acceptedUpToMs, startedAtMs);
      this.#abandon(client);
      socket.destroy();
      return undefined;
    }
    const waitedMs = performance.now() - this.#acceptedUpToMs;
    this.#probeAgain(socket, waitedMs);
    return waitedMs;
  }

  /** Whether connections may be waiting to be accepted. */
  isAccepting(): boolean {
    return this.#isBusy;
  }

  /** Call this when it turns out that this process did nothing for so long, before the next connection is measured. */
  recordFreeze(frozenMs: number): void {
    this.#follow();
    this.#acceptedUpToMs -= frozenMs;
    // They are older than this process's clock says.
    this.#abandonProbes();
  }

  #follow(): void {
    this.#happened += 1;
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#acceptedUpToMs = this.#lastPollMs();
    setImmediate(() => this.#followTurn());
  }

  /** The event loop polls the kernel once between two immediates. */
  #followTurn(): void {
    const happenedBefore = this.#happened;
    setImmediate(() => {
      if (this.#happened !== happenedBefore) return this.#followTurn();
      this.#isBusy = false;
      this.#abandonProbes();
    });
  }

  #probeAgain(socket: Socket, waitedMs: number): void {
    const nowMs = performance.now();
    for (const [client, startedAtMs] of this.#probes)
      if (client.connecting && nowMs - startedAtMs > longestConnectMs) this.#abandon(client);
    const lastKnownMs = Math.max(this.#acceptedUpToMs, ...this.#probes.values());
    const intervalMs = Math.max(probeIntervalMs, waitedMs / maxProbes);
    if (nowMs - lastKnownMs > intervalMs && this.#probes.size < maxProbes) this.#probe(socket);
  }

  #probe({ localAddress, localPort }: Socket): void {
    if (localAddress === undefined || localPort === undefined) return;
    const client = connect({ host: localAddress, port: localPort });
    this.#probes.set(client, performance.now());
    // If it fails, only a turn without a connection shows that none is waiting.
    client.on("error", () => {});
    client.once("close", () => this.#probes.delete(client));
  }

  #abandon(client: Socket): void {
    client.destroy();
    this.#probes.delete(client);
  }

  #abandonProbes(): void {
    for (const client of this.#probes.keys()) this.#abandon(client);
  }
}

function isOtherEnd(socket: Socket, client: Socket): boolean {
  return (
    socket.remotePort !== undefined &&
    socket.remotePort === client.localPort &&
    socket.remoteAddress === client.localAddress
  );
}
