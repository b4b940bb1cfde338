import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Counter, Gauge, type Registry } from "@booking-events/runtime";

export interface Connection {
  readonly socket: Socket;
  /** Requests that were passed to the app and whose answers have not been handed to the kernel yet. */
  requestsUnderWay: number;
  /** The number of requests with a valid secret. */
  authenticRequests: number;
  /** The response to the newest request, while any request is in progress. */
  newestResponse: ServerResponse | undefined;
  /** Called when no more requests are in progress. */
  afterAnswers: (() => void) | undefined;
}

/** Tracks the open connections, and closes one to make room for a new one. */
export interface Connections {
  /**
   * Adds a new connection, or closes it if all others are busy or its client has reset it. Ignores one that has been
   * closed.
   */
  open(socket: Socket): void;
  /** Returns undefined if the connection has been closed. */
  of(socket: Socket): Connection | undefined;
  all(): Iterable<Connection>;
  markAuthentic(socket: Socket): void;
  beginRequest(connection: Connection, response: ServerResponse): void;
}

/**
 * When the limit is reached, a new connection replaces the oldest one that never sent a valid secret. If there is none,
 * it replaces the one that has been idle the longest. Opening many idle connections therefore locks nobody out.
 *
 * @param options.app the prefix of the metrics' names
 */
export function createConnections(options: { app: string; maxConnections: number; metrics: Registry }): Connections {
  const connections = new Map<Socket, Connection>();
  // A Set iterates in insertion order, so the oldest member comes first.
  const strangers = new Set<Connection>();
  const idle = new Set<Connection>();
  const countClosed = createMetrics(options, connections);

  function open(socket: Socket): void {
    if (socket.destroyed) return;
    // The client reset it while it waited to be accepted. What it sent before can still be read, but nobody waits for the
    // answer. A flood of such connections delays all others by the time that each of them takes.
    if (socket.remoteAddress === undefined) {
      countClosed("gone");
      socket.destroy();
      return;
    }
    if (connections.size >= options.maxConnections && !makeRoom()) {
      countClosed("refused");
      socket.destroy();
      return;
    }
    const connection: Connection = {
      ...{ socket, requestsUnderWay: 0, authenticRequests: 0, newestResponse: undefined },
      afterAnswers: undefined,
    };
    connections.set(socket, connection);
    strangers.add(connection);
    socket.once("close", () => forget(connection));
  }

  function makeRoom(): boolean {
    for (const [dispensable, reason] of [[strangers, "stranger"] as const, [idle, "idle"] as const]) {
      for (const connection of dispensable) {
        countClosed(reason);
        forget(connection);
        connection.socket.destroy();
        return true;
      }
    }
    return false;
  }

  function forget(connection: Connection): void {
    connections.delete(connection.socket);
    strangers.delete(connection);
    idle.delete(connection);
  }

  function endRequest(connection: Connection): void {
    connection.requestsUnderWay -= 1;
    if (connection.requestsUnderWay > 0) return;
    // Otherwise the last request of each idle connection would stay in memory.
    connection.newestResponse = undefined;
    if (!connections.has(connection.socket)) return;
    const { afterAnswers } = connection;
    connection.afterAnswers = undefined;
    afterAnswers?.();
    if (connection.authenticRequests > 0 && connection.requestsUnderWay === 0) idle.add(connection);
  }

  return {
    open,
    of: (socket) => connections.get(socket),
    all: () => connections.values(),
    markAuthentic(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return;
      connection.authenticRequests += 1;
      strangers.delete(connection);
    },
    beginRequest(connection, response) {
      connection.requestsUnderWay += 1;
      connection.newestResponse = response;
      idle.delete(connection);
      // "finish" is not emitted when the connection breaks.
      response.once("close", () => endRequest(connection));
    },
  };
}

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
  return (reason: "stranger" | "idle" | "refused" | "gone") => closed.inc({ reason });
}
