import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type {
  AnswerGuess,
  ChargePartner,
  LimitPartner,
  ObservedRequest,
  ObserveRequest,
  PageAnswer,
  RateLimitVerdict,
  RecordUse,
} from "@booking-events/http";
import {
  authenticate,
  findHostFault,
  QuietKoa,
  Refusal,
  requestIdOf,
  SecretRefused,
  sendAnswer,
} from "@booking-events/http";
import type { PartnerRegistry } from "@booking-events/partners";
import type { Producer } from "@booking-events/queue";
import { describeError, type Logger, type Span, type Tracing } from "@booking-events/runtime";
import {
  type Answer,
  answers,
  type BookingPayload,
  countJsonValues,
  type EventKind,
  eventKinds,
  type Violation,
  validatePayload,
} from "@booking-events/schema";
import { Router, type RouterContext } from "@koa/router";
import type Koa from "koa";
import type { BodyObject } from "./body/decode-body.ts";
import { describeViolations } from "./body/describe-violations.ts";
import { readEventOptions } from "./body/event-options.ts";
import { type Body, ClientGone, createBodyReader } from "./body/read-body.ts";
import type { TakeTurn } from "./limits/take-turns.ts";
import type { CountUnknownFields } from "./log/count-unknown-fields.ts";
import { endRequestSpan, enqueueTraced, startRequestSpan } from "./log/trace-requests.ts";
import { answerWithPage, type Pages } from "./pages/pages.ts";

export interface AppOptions {
  /** Returns the partners of the version of the file that is in use. */
  partners: () => PartnerRegistry;
  answerGuess: AnswerGuess;
  /** Called for each request with a valid secret, in the turn of the event loop in which it arrived. */
  markAuthentic: (socket: Socket) => void;
  recordUse: RecordUse;
  /** True if events are to be refused before any work is done for them. */
  isOverloaded: () => boolean;
  /** True if data that is read now may have waited so long that its sender has given up and sent newer events. */
  wasFrozen: (socket: Socket) => boolean;
  limitPartner: LimitPartner;
  chargePartner: ChargePartner;
  takeTurn: TakeTurn;
  enqueue: Producer["enqueue"];
  countUnknownFields: CountUnknownFields;
  /** False if Redis is known to be down, or unable to store events safely. */
  isQueueAvailable: () => boolean;
  isShuttingDown: () => boolean;
  /** Static pages, found after every other route, so that events do not pay for them. */
  pages: Pages;
  bodyLimitBytes: number;
  trustedProxyHops: number;
  observe: ObserveRequest;
  /** Undefined if traces are off. */
  tracing?: Tracing | undefined;
  logger: Logger;
}

/** What is known about a request while it is processed. */
export interface RequestState {
  partner?: string;
  secretId?: string;
  rateLimitHeaders?: Answer["headers"];
  eventId?: string;
  /** Undefined if the request is not traced. */
  span?: Span | undefined;
  answer?: Answer | PageAnswer;
}

type Context = RouterContext<RequestState>;

export function createApp(options: AppOptions): Koa<RequestState> {
  const { trustedProxyHops, logger } = options;
  const app = new QuietKoa<RequestState>({
    proxy: trustedProxyHops > 0,
    // Hops are counted from the right. Addresses further left were written by the client.
    maxIpsCount: trustedProxyHops,
  });
  // The router reads the host of each request, although our routes apply to any. Koa would split the header (ADR 27).
  Object.defineProperty(app.context, "host", { value: "" });
  // Only errors after a response has been sent get here, and Koa would print them completely.
  app.on("error", (error) => logger.debug({ err: error }, "response failed"));
  app.use(answerRequests(options));
  app.use(createRouter(options).routes());
  app.use((ctx) => {
    const page = options.pages.get(ctx.path);
    if (page !== undefined) {
      ctx.state.answer = answerWithPage(page, ctx.req);
      return;
    }
    throw new Refusal(matchedKind(ctx) === undefined ? answers.notFound : answers.methodNotAllowed("POST"));
  });
  return app;
}

/** Creates one route for each kind. An empty secret matches too, because it is as invalid as any other. */
function createRouter(options: AppOptions): Router<RequestState> {
  const router = new Router<RequestState>({ sensitive: true, strict: true });
  for (const kind of eventKinds) {
    router.post(kind, `/booking-event/${kind}/{:secret}`, receiveEvents(kind, options));
  }
  return router;
}

/** Receives an event, from checking the secret to queueing. Each step throws a Refusal to end the request. */
function receiveEvents(kind: EventKind, options: AppOptions): (ctx: Context) => Promise<void> {
  const readBody = createBodyReader(options.bodyLimitBytes);
  const { chargePartner } = options;

  return async function receiveEvent(ctx) {
    // The secret is checked first, so that strangers learn nothing else and cannot make us read a body.
    const { secret = "" } = ctx.params;
    const refuse = () => options.answerGuess(ctx.ip);
    const registry = options.partners();
    if (registry.partnerCount === 0) throw new Refusal(answers.partnersUnknown);
    const { partner, secretId } = authenticate(registry, secret, kind, Date.now(), refuse);
    ctx.state.partner = partner.id;
    ctx.state.secretId = secretId;
    ctx.state.span = startRequestSpan(options.tracing, ctx.req, kind);
    options.markAuthentic(ctx.req.socket);
    options.recordUse(partner.id, secretId);
    if (options.isShuttingDown()) throw new Refusal(answers.shuttingDown);
    if (options.isOverloaded() || options.wasFrozen(ctx.req.socket)) throw new Refusal(answers.overloaded);
    // Every request with a valid secret takes a token, even a dry run or a request that is refused later.
    passLimit(ctx, await options.limitPartner(partner));
    const body = await readBody(ctx);
    const receivedAt = new Date().toISOString();
    const read = () => readEvent(ctx, kind, body, (values) => chargePartner(partner, body.bytes, values));
    const { payload, idempotencyKey, isDryRun } = await options.takeTurn(partner.id, body.bytes, read);
    options.countUnknownFields(partner.id, payload);
    // The body may have waited even if the headers have not.
    if (options.wasFrozen(ctx.req.socket)) throw new Refusal(answers.overloaded);
    if (isDryRun) {
      ctx.state.answer = answers.dryRunPassed;
      return;
    }
    if (!options.isQueueAvailable()) throw new Refusal(answers.queueUnavailable);
    const eventId = requestIdOf(ctx.req);
    ctx.state.eventId = eventId;
    const event = { eventId, kind, partner: partner.id, secretId, receivedAt, idempotencyKey, payload };
    try {
      await enqueueTraced(options.enqueue, event, ctx.state.span);
    } catch (error) {
      throw new Refusal(answers.queueUnavailable, { cause: error });
    }
    ctx.state.answer = answers.accepted(eventId);
  };
}

/** @throws Refusal, ClientGone */
function passLimit(ctx: Context, { retryAfterS, headers }: RateLimitVerdict): void {
  ctx.state.rateLimitHeaders = headers;
  if (retryAfterS !== undefined) throw new Refusal(answers.overRateLimit(retryAfterS));
  if (ctx.req.destroyed) throw new ClientGone();
}

/** @param charge called with the number of JSON values in the body, even if it is refused; 0 if it can't be decoded */
function readEvent(ctx: Context, kind: EventKind, body: Body, charge: (values: number) => void) {
  let values = 0;
  try {
    const object = body.decode();
    values = countJsonValues(object);
    return { ...readEventOptions(ctx.req.headers), payload: checkPayload(kind, object) };
  } finally {
    charge(values);
  }
}

function checkPayload(kind: EventKind, body: BodyObject): BookingPayload {
  const result = validatePayload(kind, body);
  if (!result.success) throw refuseAsInvalid(result.violationList);
  return result.payload;
}

function refuseAsInvalid(violationList: Violation[]): Refusal {
  return new Refusal(answers.invalidData(violationList), { violations: describeViolations(violationList) });
}

/** Sends the answer to every request, logs it and counts it, whatever happened to it. */
function answerRequests(options: AppOptions): Koa.Middleware<RequestState> {
  const { observe } = options;

  return async function answerRequest(ctx, next) {
    const startedAtMs = performance.now();
    // Koa's own response handling ignores unread bodies, and its error handling drops our headers.
    ctx.respond = false;
    let answer: Answer | PageAnswer | undefined;
    let error: unknown;
    try {
      ctx.url = toOriginForm(ctx.req);
      await next();
      answer = ctx.state.answer ?? answers.internalError;
    } catch (thrown) {
      error = thrown;
      answer = toAnswer(thrown);
    }
    // If headers have been sent, the server answered instead of the app while the body was still being received.
    const wasSent = ctx.res.headersSent;
    const sending =
      answer !== undefined && !wasSent
        ? sendAnswer(ctx.res, answer, { headers: ctx.state.rateLimitHeaders })
        : undefined;
    const request: ObservedRequest = {
      requestId: requestIdOf(ctx.req),
      method: ctx.method,
      kind: matchedKind(ctx),
      partner: ctx.state.partner,
      secretId: ctx.state.secretId,
      eventId: ctx.state.eventId,
      status: wasSent ? ctx.status : answer?.status,
      outcome: wasSent ? "cut-off" : (answer?.code ?? "client-gone"),
      durationMs: performance.now() - startedAtMs,
      ...detailsForLog(ctx, error),
    };
    observe(request);
    if (ctx.state.span !== undefined) endRequestSpan(ctx.state.span, request);
    await sending;
  };
}

/** Returns undefined if the client has disconnected. */
function toAnswer(error: unknown): Answer | undefined {
  if (error instanceof Refusal) return error.answer;
  return error instanceof ClientGone ? undefined : answers.internalError;
}

/**
 * Returns the kind in the request's path, whatever its method, or undefined if no route matches. The router stores the
 * matching routes.
 */
function matchedKind(ctx: Koa.ParameterizedContext<RequestState>): string | undefined {
  const { matched } = ctx;
  return matched?.[0]?.name;
}

function detailsForLog(ctx: Koa.ParameterizedContext<RequestState>, error: unknown): Partial<ObservedRequest> {
  if (error === undefined || error instanceof ClientGone) return {};
  if (error instanceof SecretRefused) {
    const { outcome, partnerId: partner, secretId } = error;
    return { outcome, partner, secretId, ip: ctx.ip, isSecretRefused: true };
  }
  const { ip } = ctx;
  if (!(error instanceof Refusal)) return { ip, err: error };
  const { cause, violations } = error;
  return { ip, violations, cause: cause === undefined ? undefined : describeRootCause(cause) };
}

/** For example `ReplyError OOM`. In an outage, a stack on each line would hide everything else. */
function describeRootCause(error: unknown): string {
  if (error instanceof Error && error.cause !== undefined) return describeRootCause(error.cause);
  const { type, code } = describeError(error);
  return code === undefined ? type : `${type} ${code}`;
}

/**
 * Returns the path and query of a request in either form that RFC 9112 requires servers to accept.
 *
 * Only a path may reach Koa and its router. They pass anything else to Node's `url.parse`, which prints a URL with a
 * malformed port, including the secret, as a warning (DEP0170).
 */
function toOriginForm(req: IncomingMessage): string {
  const hostFault = findHostFault(req);
  if (hostFault !== undefined) throw new Refusal(hostFault);
  const path = /^(?:https?:\/\/[^/?#]*)?(\/[^#]*)$/i.exec(req.url ?? "")?.[1];
  if (path === undefined) throw new Refusal(answers.notFound);
  return path;
}
