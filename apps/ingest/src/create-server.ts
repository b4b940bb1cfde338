import { createServer as createHttpServer, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type Koa from "koa";
import { type Answer, headersTooLarge, malformedHttp, methodNotAllowed, requestTimeout } from "./answers.ts";
import type { RequestState } from "./app.ts";
import type { ObserveRequest } from "./observe-requests.ts";
import { sendAnswer, sendAnswerOnSocket } from "./send-answer.ts";

export const serverLimits = {
  /** The whole request must be here by then. Node's default of 300 s lets a few slow clients hold everything. */
  requestTimeoutMs: 10_000,
  headersTimeoutMs: 5_000,
  timeoutCheckIntervalMs: 1_000,
  /** Longer than the 60 s for which common load balancers keep a connection, so that it is they who close it. */
  keepAliveTimeoutMs: 75_000,
  /** URL and headers together. */
  maxHeaderBytes: 8_192,
};

export interface IngestServer {
  server: Server;
  /**
   * Accepts nothing more, lets requests that are under way get their answers, and closes every connection. A client
   * that is still sending at the end of its time is cut off.
   */
  stop(): Promise<void>;
}

/** The HTTP server with every limit that acts before, or outside, the app. */
export function createServer(app: Koa<RequestState>, observe: ObserveRequest, limits = serverLimits): IngestServer {
  const handle = app.callback();
  /** Each with the response to its newest request, until that is answered. */
  const connections = new Map<Socket, ServerResponse | undefined>();

  const server = createHttpServer({
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Node would answer without a body; the app answers.
    requireHostHeader: false,
  });
  server.on("connection", (socket) => {
    connections.set(socket, undefined);
    socket.once("close", () => connections.delete(socket));
  });
  // Without a listener of its own, Node answers an Expect header by asking for the body before we know the partner.
  for (const event of ["request", "checkContinue", "checkExpectation"] as const) {
    server.on(event, async (req, res) => {
      const { socket } = req;
      connections.set(socket, res);
      await handle(req, res);
      // Kept any longer, the last request of each idle connection would stay in memory.
      if (connections.get(socket) === res) connections.set(socket, undefined);
    });
  }
  server.on("connect", (_req, socket) => sendAnswerOnSocket(socket as Socket, methodNotAllowed));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    answerClientError(error, socket, connections.get(socket), observe);
  });

  return {
    server,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      // Node counts a connection on which nothing was sent yet as busy, and stops its own timers when it closes.
      for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy();
      const cutOff = setTimeout(() => server.closeAllConnections(), limits.requestTimeoutMs);
      await closed;
      clearTimeout(cutOff);
    },
  };
}

/**
 * Node could not go on reading a request: too slow, too large, or not HTTP.
 *
 * @param response to the newest request on this connection, unless it has been answered
 */
function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  response: ServerResponse | undefined,
  observe: ObserveRequest,
): void {
  if (error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  // Told again for each packet that follows.
  if (!socket.writable) return;
  const answer = toAnswer(error.code);
  if (response === undefined || response.writableEnded) {
    observe({ status: answer.status, outcome: answer.outcome });
    sendAnswerOnSocket(socket, answer);
  } else if (response.req.complete) {
    // An earlier request on this connection waits for its answer, which must not be ours: it may have been accepted.
    response.shouldKeepAlive = false;
  } else if (response.headersSent) {
    socket.destroy();
  } else {
    // The app is reading this request's body. Node does not tell it of a connection that closes after the answer, so
    // that it would wait for ever; destroying the request does, and the app logs it.
    void sendAnswer(response, answer, { close: true }).finally(() => response.req.destroy());
  }
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
