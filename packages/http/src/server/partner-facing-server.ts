import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { type Answer, answers } from "@booking-events/schema";
import { createRequestId, requestIdOf } from "../answers/request-id.ts";
import { discardInput, endGently, isChunked, sendAnswer, sendAnswerOnSocket } from "../answers/send-answer.ts";
import { findHostFault } from "../app/host-header.ts";
import type { ObserveRequest } from "../log/observed-request.ts";
import type { Connection, Connections } from "./connections.ts";
import { joinChunks } from "./join-chunks.ts";
import { stopParserAt } from "./stop-parser.ts";

export const serverLimits = {
  /**
   * For receiving the whole request. With Node's default of 300 s, a few slow clients could occupy all connections. Also
   * how long after a stop clients may go on sending: shutdown waits for no more than 12 s.
   */
  requestTimeoutMs: 10_000,
  headersTimeoutMs: 5_000,
  timeoutCheckIntervalMs: 1_000,
  /** For the URL and the headers together. */
  maxHeaderBytes: 8_192,
  /** Per connection: requests passed to the app whose answers have not been handed to the kernel completely. */
  maxRequestsUnderWay: 16,
  /** How long a connection may have no traffic while an answer waits to be read. Longer than any answer takes. */
  unreadAnswerTimeoutMs: 15_000,
};

type Limits = typeof serverLimits;

interface ServerParts {
  /** Marks a connection with a valid secret in `connections` before it returns. */
  handle: RequestListener;
  /** Whether the request has a valid secret, and a path that takes bodies. Otherwise, its chunks are not parsed. */
  mayHaveBody: (req: IncomingMessage) => boolean;
  connections: Connections;
  /**
   * When idle connections are closed. Longer than a load balancer keeps them: what it sends on a connection that is being
   * closed gets no answer.
   */
  keepAliveTimeoutMs: number;
  observe: ObserveRequest;
  limits: Limits;
}

/** The HTTP server, with all limits that apply before or outside the app. */
export class PartnerFacingServer {
  readonly server: Server;
  readonly #parts: ServerParts;
  #isStopping = false;

  constructor(parts: Omit<ServerParts, "limits"> & { limits?: Limits }) {
    const { limits = serverLimits } = parts;
    this.#parts = { ...parts, limits };
    this.server = createHttpServer({
      ...toNodeOptions(limits),
      keepAliveTimeout: parts.keepAliveTimeoutMs,
      IncomingMessage: joinChunks(
        stopParserAt((req) => this.#mustStopParser(req)),
        (req) => this.#countRead(req.socket),
      ),
    });
    this.server.timeout = limits.unreadAnswerTimeoutMs;
    this.#listen();
  }

  /**
   * Stops accepting requests, lets those in progress get their answers, and closes every connection. A client that is
   * still sending when the time is over is disconnected.
   */
  stop(): Promise<void> {
    this.#isStopping = true;
    return stopServer(this.server, this.#parts.connections, this.#parts.limits.requestTimeoutMs);
  }

  #listen(): void {
    const { server } = this;
    server.on("connection", (socket) => this.#parts.connections.open(socket));
    // Without its own listener for an Expect header, Node would ask for the body before the secret is checked.
    for (const event of ["request", "checkContinue", "checkExpectation"] as const) {
      server.on(event, (req, res) => this.#handleRequest(req, res));
    }
    for (const event of ["connect", "upgrade"] as const) {
      server.on(event, (req, socket) => this.#handleLastRequest(req, socket as Socket));
    }
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      answerClientError(error, {
        connection: this.#parts.connections.of(socket),
        socket,
        observe: this.#parts.observe,
      });
    });
  }

  #mustStopParser(req: IncomingMessage): boolean {
    return !this.#acceptsRequests(this.#parts.connections.of(req.socket)) || this.#hasUnwantedChunks(req);
  }

  /** Each chunk costs as much as a small request, before the answer can close the connection. */
  #hasUnwantedChunks(req: IncomingMessage): boolean {
    return isChunked(req) && !this.#parts.mayHaveBody(req);
  }

  #countRead(socket: Socket): void {
    const connection = this.#parts.connections.of(socket);
    if (connection !== undefined) this.#parts.connections.countRead(connection);
  }

  #acceptsRequests(connection: Connection | undefined): connection is Connection {
    if (connection === undefined || isClosing(connection)) return false;
    return connection.requestsUnderWay < this.#parts.limits.maxRequestsUnderWay;
  }

  #handleRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = this.#parts.connections.of(req.socket);
    if (!this.#acceptsRequests(connection)) {
      // Only reached if the parser did not stop.
      req.socket.destroy();
      return;
    }
    this.#parts.connections.countRead(connection);
    const { authenticRequests } = connection;
    const { shouldKeepAlive } = res;
    this.#parts.connections.beginRequest(connection, res);
    // A request without a valid secret closes its connection, so each further guess costs its sender a new one.
    res.shouldKeepAlive = false;
    this.#parts.handle(req, res);
    if (connection.authenticRequests > authenticRequests && !this.#isStopping) res.shouldKeepAlive = shouldKeepAlive;
  }

  /**
   * Handles a request after which the parser has stopped. Node has removed its listeners from the socket, and without a
   * listener for errors a reset would end the process.
   */
  #handleLastRequest(req: IncomingMessage, socket: Socket): void {
    socket.on("error", () => socket.destroy());
    socket.setTimeout(this.#parts.limits.unreadAnswerTimeoutMs, () => socket.destroy());
    const connection = this.#parts.connections.of(socket);
    if (connection !== undefined) this.#parts.connections.countRead(connection);
    if (connection === undefined) {
      socket.destroy();
    } else if (isClosing(connection)) {
      // The connection closes after an earlier answer, so this request gets none.
    } else if (!this.#acceptsRequests(connection)) {
      this.#parts.observe({
        requestId: requestIdOf(req),
        method: req.method,
        outcome: "too-many-under-way",
        ip: socket.remoteAddress,
      });
      discardInput(socket, () => socket.pause());
      closeAfterAnswers(connection);
    } else if (req.method === "CONNECT") {
      this.#refuseConnect(req, socket, connection);
    } else {
      this.#handleWithoutBody(req, socket, connection);
    }
  }

  #refuseConnect(req: IncomingMessage, socket: Socket, connection: Connection): void {
    const answer = findHostFault(req) ?? answers.wrongMethod("POST");
    const { status, code: outcome } = answer;
    const requestId = requestIdOf(req);
    this.#parts.observe({ requestId, method: req.method, status, outcome, ip: socket.remoteAddress });
    afterAnswers(connection, () => sendAnswerOnSocket(socket, answer, requestId));
  }

  /** Answers a request as if its body never arrived. Its answer follows those of earlier requests. */
  #handleWithoutBody(req: IncomingMessage, socket: Socket, connection: Connection): void {
    discardInput(socket, () => socket.pause());
    afterAnswers(connection, () => {
      // The list of partners may have changed meanwhile, and the body is lost.
      if (this.#parts.mayHaveBody(req)) {
        socket.destroy();
        return;
      }
      const res = new ServerResponse(req);
      res.assignSocket(socket);
      res.once("finish", () => endGently(socket));
      // Node has set its own time-out after the answer before.
      socket.setTimeout(this.#parts.limits.unreadAnswerTimeoutMs);
      this.#parts.connections.beginRequest(connection, res);
      res.shouldKeepAlive = false;
      this.#parts.handle(req, res);
    });
  }
}

function toNodeOptions(limits: Limits): ServerOptions {
  return {
    requestTimeout: limits.requestTimeoutMs,
    headersTimeout: limits.headersTimeoutMs,
    connectionsCheckingInterval: limits.timeoutCheckIntervalMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // The app answers instead, because Node's answer has no body.
    requireHostHeader: false,
    // No other protocol is supported, and a server may ignore the request to upgrade (RFC 9110, section 7.8).
    shouldUpgradeCallback: () => false,
  };
}

/** Answers a request that Node could not read: too slow, too large, or not HTTP. */
function answerClientError(
  error: NodeJS.ErrnoException,
  { connection, socket, observe }: { connection: Connection | undefined; socket: Socket; observe: ObserveRequest },
): void {
  if (error.code === "ECONNRESET" || connection === undefined) {
    socket.destroy();
    return;
  }
  const { newestResponse: response, pacedResponse } = connection;
  // Node reports each request only once.
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && pacedResponse !== undefined && response === pacedResponse) return;
  // The event is repeated for each packet that follows.
  if (!socket.writable) return;
  const answer = toAnswer(error.code);
  if (response === undefined) {
    const requestId = createRequestId();
    observe({ requestId, status: answer.status, outcome: answer.code, ip: socket.remoteAddress });
    sendAnswerOnSocket(socket, answer, requestId);
  } else if (response.req.complete) {
    // Requests on this connection still wait for their answers. They may have been accepted, so this answer must not
    // replace theirs.
    closeAfterAnswers(connection);
  } else if (response.headersSent) {
    socket.destroy();
  } else {
    // The app is reading this request's body. Node does not notify it when the connection closes after an answer, so
    // it would wait forever. Destroying the request notifies it, and it logs the request.
    void sendAnswer(response, answer, { close: true }).finally(() => response.req.destroy());
  }
}

async function stopServer(server: Server, connections: Connections, timeLimitMs: number): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  for (const connection of connections.all()) {
    // Node treats a connection without any data as busy, and stops its own timers when it closes.
    if (connection.socket.bytesRead === 0) connection.socket.destroy();
    // The last answer announces that the connection closes; no other answer may follow such an answer.
    else if (connection.requestsUnderWay > 0) closeAfterAnswers(connection);
  }
  const cutOffTimer = setTimeout(() => {
    for (const { socket } of connections.all()) socket.destroy();
  }, timeLimitMs);
  await closed;
  clearTimeout(cutOffTimer);
}

/** No request is served after an answer that closes the connection, because its answer would never be sent. */
function isClosing({ socket, newestResponse }: Connection): boolean {
  return !socket.writable || newestResponse?.shouldKeepAlive === false;
}

function closeAfterAnswers(connection: Connection): void {
  // Sets the header of the last answer, unless it has been sent.
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
      return answers.tooSlow;
    case "HPE_HEADER_OVERFLOW":
      return answers.headersTooLarge;
    default:
      return answers.malformedHttp;
  }
}
