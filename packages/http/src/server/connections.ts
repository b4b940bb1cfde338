import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Counter, Gauge, type Registry } from "@booking-events/runtime";
import { type Reader, TurnBudget } from "./turn-budget.ts";

export interface Connection {
  readonly socket: Socket;
  readonly reader: Reader;
  /** Requests that were passed to the app and whose answers have not been handed to the kernel yet. */
  requestsUnderWay: number;
  /** The number of requests with a valid secret. */
  authenticRequests: number;
  /** The response to the newest request, while any request is in progress. */
  newestResponse: ServerResponse | undefined;
  /** The response to a request of which the app itself limits how long it takes, while it is in progress. */
  pacedResponse: ServerResponse | undefined;
  /** Called when no more requests are in progress. */
  afterAnswers: (() => void) | undefined;
}

/**
 * Tracks the open connections. When the limit is reached, a new connection replaces the oldest one that never sent a
 * valid secret. If there is none, it replaces the one that has been idle the longest. Opening many idle connections
 * therefore locks nobody out.
 */
export class Connections {
  readonly #maxConnections: number;
  readonly #budget: TurnBudget;
  readonly #connections = new Map<Socket, Connection>();
  // A Set iterates in insertion order, so the oldest member comes first.
  readonly #strangers = new Set<Connection>();
  readonly #idle = new Set<Connection>();
  readonly #countClosed: (reason: ClosingReason) => void;

  /**
   * @param options.app the prefix of the metrics' names
   * @param options.isAccepting whether connections may be waiting to be accepted. Default: never
   */
  constructor(options: { app: string; maxConnections: number; metrics: Registry; isAccepting?: () => boolean }) {
    this.#maxConnections = options.maxConnections;
    this.#budget = new TurnBudget(options);
    this.#countClosed = createMetrics(options, this.#connections);
  }

  /**
   * Adds a new connection, or closes it if all others are busy or its client has reset it. Ignores one that has been
   * closed.
   */
  open(socket: Socket): void {
    if (socket.destroyed) return;
    // The client reset it while it waited to be accepted. What it sent before can still be read, but nobody waits for the
    // answer. A flood of such connections delays all others by the time that each of them takes.
    if (socket.remoteAddress === undefined) {
      this.#countClosed("gone");
      socket.destroy();
      return;
    }
    if (this.#connections.size >= this.#maxConnections && !this.#makeRoom()) {
      this.#countClosed("refused");
      socket.destroy();
      return;
    }
    const connection: Connection = {
      socket,
      reader: this.#budget.add(socket),
      requestsUnderWay: 0,
      authenticRequests: 0,
      newestResponse: undefined,
      pacedResponse: undefined,
      afterAnswers: undefined,
    };
    this.#connections.set(socket, connection);
    this.#strangers.add(connection);
    socket.once("close", () => {
      // Thousands may be reset at once.
      this.#budget.count(connection.reader);
      this.#forget(connection);
    });
  }

  /** Returns undefined if the connection has been closed. */
  of(socket: Socket): Connection | undefined {
    return this.#connections.get(socket);
  }

  all(): Iterable<Connection> {
    return this.#connections.values();
  }

  markAuthentic(socket: Socket, partner: string): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    connection.authenticRequests += 1;
    this.#strangers.delete(connection);
    this.#budget.assign(connection.reader, partner);
  }

  /**
   * Call this if the app limits how long a request takes. Requests that follow on the connection have the usual limits.
   *
   * @returns to be called when the app has written its answer: the client then has the usual time to read what is left
   */
  markPaced(response: ServerResponse): () => void {
    const { socket } = response.req;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return () => {};
    connection.pacedResponse = response;
    const { timeout = 0 } = socket;
    // While the app keeps the client waiting, there may be no traffic.
    socket.setTimeout(0);
    const limitTime = () => {
      // Otherwise, Node has set the time for which an idle connection is kept.
      if (connection.requestsUnderWay > 0) socket.setTimeout(timeout);
    };
    response.once("close", () => {
      connection.pacedResponse = undefined;
      limitTime();
    });
    return limitTime;
  }

  /** Call this when something has been read from the connection, before any work is done for it. */
  countRead({ reader }: Connection): void {
    this.#budget.count(reader);
  }

  /** Whether what was read from the connection a moment ago may have waited too long, because others were read first. */
  isLate(socket: Socket): boolean {
    const connection = this.#connections.get(socket);
    return connection !== undefined && this.#budget.isLate(connection.reader);
  }

  beginRequest(connection: Connection, response: ServerResponse): void {
    connection.requestsUnderWay += 1;
    connection.newestResponse = response;
    this.#idle.delete(connection);
    // "finish" is not emitted when the connection breaks.
    response.once("close", () => this.#endRequest(connection));
  }

  #endRequest(connection: Connection): void {
    connection.requestsUnderWay -= 1;
    if (connection.requestsUnderWay > 0) return;
    // Otherwise the last request of each idle connection would stay in memory.
    connection.newestResponse = undefined;
    if (!this.#connections.has(connection.socket)) return;
    const { afterAnswers } = connection;
    connection.afterAnswers = undefined;
    afterAnswers?.();
    if (connection.authenticRequests > 0 && connection.requestsUnderWay === 0) this.#idle.add(connection);
  }

  #makeRoom(): boolean {
    const [oldestStranger] = this.#strangers;
    const [longestIdle] = this.#idle;
    const dispensable = oldestStranger ?? longestIdle;
    if (dispensable === undefined) return false;
    this.#countClosed(dispensable === oldestStranger ? "stranger" : "idle");
    this.#forget(dispensable);
    dispensable.socket.destroy();
    return true;
  }

  #forget(connection: Connection): void {
    this.#budget.remove(connection.reader);
    this.#connections.delete(connection.socket);
    this.#strangers.delete(connection);
    this.#idle.delete(connection);
  }
}

type ClosingReason = "stranger" | "idle" | "refused" | "gone";

function createMetrics(
  { app, metrics }: { app: string; metrics: Registry },
  connections: ReadonlyMap<Socket, Connection>,
) {
  new Gauge({
    name: `${app}_connections`,
    help: "Open connections.",
    registers: [metrics],
    collect() {
      this.set(connections.size);
    },
  });
  new Gauge({
    name: `${app}_requests_in_flight`,
    help: "Requests that are being read or handled, or whose answer is being sent.",
    registers: [metrics],
    collect() {
      let requests = 0;
      for (const { requestsUnderWay } of connections.values()) requests += requestsUnderWay;
      this.set(requests);
    },
  });
  const closed = new Counter({
    name: `${app}_connections_closed_total`,
    help:
      "Connections closed because of MAX_CONNECTIONS, by reason: stranger or idle, to make room for a new one; " +
      "or refused, because all others were busy. Or gone: the client had reset it before it was accepted.",
    labelNames: ["reason"],
    registers: [metrics],
  });
  return (reason: ClosingReason) => closed.inc({ reason });
}
