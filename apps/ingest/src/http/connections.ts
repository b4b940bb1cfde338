import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Counter, Gauge, type Registry } from "@booking-events/runtime";

export interface Connection {
  readonly socket: Socket;
  /** Requests that were handed to the app, and whose answers the kernel does not have yet. */
  requestsUnderWay: number;
  /** Requests that came with a valid secret. */
  authenticRequests: number;
  /** To the newest request, while any is under way. */
  newestResponse: ServerResponse | undefined;
  /** What happens once no request is under way. */
  afterAnswers: (() => void) | undefined;
}

/** The connections that are open, and which of them is given up for a new one. */
export interface Connections {
  /** Takes a new connection, unless all others are busy: then it is closed. */
  open(socket: Socket): void;
  /** undefined: the connection has been closed. */
  of(socket: Socket): Connection | undefined;
  all(): Iterable<Connection>;
  noteAuthentic(socket: Socket): void;
  beginRequest(connection: Connection, response: ServerResponse): void;
}

/**
 * When there are as many as may be, a new one takes the place of the oldest that never came with a valid secret, or
 * else of the one on which no request has been under way for longest. So whoever opens connections and does nothing
 * with them keeps nobody out.
 */
export function createConnections(options: { maxConnections: number; metrics: Registry }): Connections {
  const connections = new Map<Socket, Connection>();
  // A Set keeps the order in which its members came: the first is the oldest.
  const strangers = new Set<Connection>();
  const idle = new Set<Connection>();
  const countClosed = createMetrics(options.metrics, () => connections.size);

  function open(socket: Socket): void {
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
    // Kept any longer, the last request of each idle connection would stay in memory.
    connection.newestResponse = undefined;
    if (!connections.has(connection.socket)) return;
    connection.afterAnswers?.();
    if (connection.authenticRequests > 0) idle.add(connection);
  }

  return {
    open,
    of: (socket) => connections.get(socket),
    all: () => connections.values(),
    noteAuthentic(socket) {
      const connection = connections.get(socket);
      if (connection === undefined) return;
      connection.authenticRequests += 1;
      strangers.delete(connection);
    },
    beginRequest(connection, response) {
      connection.requestsUnderWay += 1;
      connection.newestResponse = response;
      idle.delete(connection);
      // Not "finish", which does not come when the connection breaks.
      response.once("close", () => endRequest(connection));
    },
  };
}

function createMetrics(metrics: Registry, countOpen: () => number) {
  new Gauge({
    name: "ingest_connections",
    help: "Connections that are open.",
    registers: [metrics],
    collect() {
      this.set(countOpen());
    },
  });
  const closed = new Counter({
    name: "ingest_connections_closed_total",
    help: "Connections closed because of MAX_CONNECTIONS: of a stranger or idle, to make room; refused, as all were busy.",
    labelNames: ["reason"],
    registers: [metrics],
  });
  return (reason: "stranger" | "idle" | "refused") => closed.inc({ reason });
}
