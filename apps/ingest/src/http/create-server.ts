import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { ObserveRequest } from "../log/observe-requests.ts";
import { type Answer, headersTooLarge, malformedHttp, methodNotAllowed, requestTimeout } from "./answers.ts";
import type { Connection, Connections } from "./connections.ts";
import { findHostFault } from "./host-header.ts";
import { discardInput, sendAnswer, sendAnswerOnSocket } from "./send-answer.ts";
import { stopParserAt } from "./stop-parser.ts";

export const serverLimits = {
  /** The whole request must be here by then. Node's default of 300 s lets a few slow clients hold everything. */
  requestTimeoutMs: 10_000,
  headersTimeoutMs: 5_000,
  timeoutCheckIntervalMs: 1_000,
  /** Longer than the 60 s for which common load balancers keep a connection, so that it is they who close it. */
  keepAliveTimeoutMs: 75_000,
  /** URL and headers together. */
  maxHeaderBytes: 8_192,
  /** Of one connection: handed to the app, and the kernel does not have the whole answer yet. */
  maxRequestsUnderWay: 16,
  /** Nothing is read or written for so long while an answer waits to be fetched. Longer than any answer takes. */
  unreadAnswerTimeoutMs: 15_000,
};

export interface IngestServer {
  server: Server;
  /**
   * Accepts nothing more, lets requests that are under way get their answers, and closes every connection. A client
   * that is still sending at the end of its time is cut off.
   */
  stop(): Promise<void>;
}

/**
 * The HTTP server with every limit that acts before, or outside, the app.
 *
 * @param options.handle tells `connections` of a valid secret before it returns for the first time
 */
export function createServer(options: {
  handle: RequestListener;
  connections: Connections;
  observe: ObserveRequest;
  limits?: typeof serverLimits;
}): IngestServer {
  const { handle, connections, observe, limits = serverLimits } = options;
  let isStopping = false;

  const server = createHttpServer({
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node would answer without a body; the app answers.
    requireHostHeader: false,
    IncomingMessage: stopParserAt((socket) => !takesRequests(connections.of(socket))),
    // We speak no other protocol, and may go on in this one (RFC 9110, section 7.8).
    shouldUpgradeCallback: () => false,
  });
  server.timeout = limits.unreadAnswerTimeoutMs;
  server.on("connection", connections.open);
  // Without a listener of its own, Node answers an Expect header by asking for the body before we know the partner.
  for (const event of ["request", "checkContinue", "checkExpectation"] as const) server.on(event, takeRequest);
  for (const event of ["connect", "upgrade"] as const) {
    server.on(event, (req, socket) => takeLastRequest(req, socket as Socket));
  }
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    answerClientError(error, connections.of(socket), socket);
  });

  function takesRequests(connection: Connection | undefined): connection is Connection {
    if (connection === undefined || isClosing(connection)) return false;
    return connection.requestsUnderWay < limits.maxRequestsUnderWay;
  }

  function takeRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.of(req.socket);
    if (!takesRequests(connection)) {
      // It comes here only if the parser did not stop.
      req.socket.destroy();
      return;
    }
    const { authenticRequests } = connection;
    const { shouldKeepAlive } = res;
    connections.beginRequest(connection, res);
    // What comes without a valid secret ends its connection, so that each further try costs its sender a new one.
    res.shouldKeepAlive = false;
    handle(req, res);
    if (connection.authenticRequests > authenticRequests && !isStopping) res.shouldKeepAlive = shouldKeepAlive;
  }

  /** The parser has stopped, and none of Node's listeners is left: without one for errors a reset ends the process. */
  function takeLastRequest(req: IncomingMessage, socket: Socket): void {
    socket.on("error", () => socket.destroy());
    socket.setTimeout(limits.unreadAnswerTimeoutMs, () => socket.destroy());
    const connection = connections.of(socket);
    if (connection === undefined) {
      socket.destroy();
    } else if (isClosing(connection)) {
      // Nothing may follow the answer that closes it.
    } else if (takesRequests(connection) && req.method === "CONNECT") {
      const answer = findHostFault(req) ?? methodNotAllowed;
      const { status, outcome } = answer;
      observe({ method: req.method, status, outcome, ip: socket.remoteAddress });
      afterAnswers(connection, () => sendAnswerOnSocket(socket, answer));
    } else {
      observe({ method: req.method, outcome: "too-many-under-way", ip: socket.remoteAddress });
      discardInput(socket, () => socket.pause());
      closeAfterAnswers(connection);
    }
  }

  /** Node could not go on reading a request: too slow, too large, or not HTTP. */
  function answerClientError(error: NodeJS.ErrnoException, connection: Connection | undefined, socket: Socket): void {
    if (error.code === "ECONNRESET" || connection === undefined) {
      socket.destroy();
      return;
    }
    // Told again for each packet that follows.
    if (!socket.writable) return;
    const { newestResponse: response } = connection;
    const answer = toAnswer(error.code);
    if (response === undefined) {
      observe({ status: answer.status, outcome: answer.outcome, ip: socket.remoteAddress });
      sendAnswerOnSocket(socket, answer);
    } else if (response.req.complete) {
      // Requests on this connection wait for their answers, which must not be ours: they may have been accepted.
      closeAfterAnswers(connection);
    } else if (response.headersSent) {
      socket.destroy();
    } else {
      // The app is reading this request's body. Node does not tell it of a connection that closes after the answer, so
      // that it would wait for ever; destroying the request does, and the app logs it.
      void sendAnswer(response, answer, { close: true }).finally(() => response.req.destroy());
    }
  }

  return {
    server,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      isStopping = true;
      for (const connection of connections.all()) {
        // Node counts a connection on which nothing was sent yet as busy, and stops its own timers when it closes.
        if (connection.socket.bytesRead === 0) connection.socket.destroy();
        // The last answer says that it closes: after one that says so, no other is sent.
        else if (connection.requestsUnderWay > 0) closeAfterAnswers(connection);
      }
      const cutOff = setTimeout(() => {
        for (const { socket } of connections.all()) socket.destroy();
      }, limits.requestTimeoutMs);
      await closed;
      clearTimeout(cutOff);
    },
  };
}

/** Behind an answer that closes the connection, no request is served: its answer would never be sent. */
function isClosing({ socket, newestResponse }: Connection): boolean {
  return !socket.writable || newestResponse?.shouldKeepAlive === false;
}

function closeAfterAnswers(connection: Connection): void {
  // In the headers of the last answer, if they are not sent yet.
  if (connection.newestResponse !== undefined) connection.newestResponse.shouldKeepAlive = false;
  afterAnswers(connection, () => connection.socket.destroySoon());
}

function afterAnswers(connection: Connection, act: () => void): void {
  if (connection.requestsUnderWay === 0) act();
  else connection.afterAnswers = act;
}

function toAnswer(code: string | undefined): Answer {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return requestTimeout;
    case "HPE_HEADER_OVERFLOW":
      return headersTooLarge;
    default:
      return malformedHttp;
  }
}
