import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Partner, PartnerRegistry } from "@booking-events/partners";
import type { Producer } from "@booking-events/queue";
import { describeError, type Logger } from "@booking-events/runtime";
import {
  type BookingPayload,
  countJsonValues,
  type EventKind,
  eventKinds,
  validatePayload,
} from "@booking-events/schema";
import { Router, type RouterContext } from "@koa/router";
import Koa from "koa";
import { authenticate, SecretRefused } from "./auth/authenticate.ts";
import type { NoteUse } from "./auth/record-last-use.ts";
import type { AnswerGuess } from "./auth/throttle-guessing.ts";
import type { BodyObject } from "./body/decode-body.ts";
import { readEventOptions } from "./body/event-options.ts";
import { type Body, ClientGone, createBodyReader } from "./body/read-body.ts";
import {
  type Answer,
  accepted,
  dryRunPassed,
  internalError,
  invalidData,
  methodNotAllowed,
  notFound,
  overloaded,
  overRateLimit,
  partnersUnknown,
  queueUnavailable,
  Refusal,
  shuttingDown,
} from "./http/answers.ts";
import { findHostFault } from "./http/host-header.ts";
import { sendAnswer } from "./http/send-answer.ts";
import type { ChargePartner, LimitPartner } from "./limits/limit-partners.ts";
import type { TakeTurn } from "./limits/take-turns.ts";
import type { ObservedRequest, ObserveRequest } from "./log/observe-requests.ts";
import { createEventId } from "./queue/event-id.ts";

export interface AppOptions {
  /** The partners in force now. */
  partners: () => PartnerRegistry;
  answerGuess: AnswerGuess;
  /** Told of each request with a valid secret, in the same turn in which it came. */
  noteAuthentic: (socket: Socket) => void;
  noteUse: NoteUse;
  /** True: events are refused before anything is done for them. */
  isOverloaded: () => boolean;
  /** True: what is read now may have waited so long that its sender has given it up, and has sent newer events since. */
  wasFrozen: (socket: Socket) => boolean;
  limitPartner: LimitPartner;
  chargePartner: ChargePartner;
  takeTurn: TakeTurn;
  enqueue: Producer["enqueue"];
  /** False: Redis is known to be down, or to be unfit to keep what it accepts. */
  isQueueAvailable: () => boolean;
  isShuttingDown: () => boolean;
  bodyLimitBytes: number;
  trustedProxyHops: number;
  observe: ObserveRequest;
  logger: Logger;
}

/** What becomes known of a request on its way. */
export interface RequestState {
  partner?: string;
  rateLimitHeaders?: Answer["headers"];
  eventId?: string;
  answer?: Answer;
}

type Context = RouterContext<RequestState>;

/**
 * Koa listens for the end of each response and for errors of its socket (on-finished). Node's server tells us of these
 * errors by itself, and what the listeners leave behind stays in memory until the next full garbage collection: without
 * them ingest needs a tenth less CPU time for an event, and with 512 connections a fifth.
 */
class QuietKoa extends Koa<RequestState> {
  handleRequest(ctx: Koa.Context, run: (ctx: Koa.Context) => Promise<void>): Promise<void> {
    return run(ctx).catch((error) => void this.emit("error", error));
  }
}

export function createApp(options: AppOptions): Koa<RequestState> {
  const { trustedProxyHops, logger } = options;
  const app = new QuietKoa({
    proxy: trustedProxyHops > 0,
    // Counted from the right: what stands further left was written by whoever sent the request.
    maxIpsCount: trustedProxyHops,
  });
  // Only what happens to a response after it was sent gets here, and Koa would print all of it.
  app.on("error", (error) => logger.debug({ err: error }, "response failed"));
  app.use(answerRequests(options));
  app.use(createRouter(options).routes());
  app.use((ctx) => {
    throw new Refusal(matchedKind(ctx) === undefined ? notFound : methodNotAllowed);
  });
  return app;
}

/** Three routes. The empty secret is one of them, since it is as invalid as any other. */
function createRouter(options: AppOptions): Router<RequestState> {
  const router = new Router<RequestState>({ sensitive: true, strict: true });
  for (const kind of eventKinds) {
    router.post(kind, `/booking-event/${kind}/{:secret}`, receiveEvents(kind, options));
  }
  return router;
}

/** An event's whole way from the secret to the queue. Each step throws the Refusal that ends it. */
function receiveEvents(kind: EventKind, options: AppOptions): (ctx: Context) => Promise<void> {
  const readBody = createBodyReader(options.bodyLimitBytes);

  return async function receiveEvent(ctx) {
    // First of all, so that a stranger learns nothing but that, and makes us read nothing.
    const { secret = "" } = ctx.params;
    const refuse = () => options.answerGuess(ctx.ip);
    const registry = options.partners();
    if (registry.partnerCount === 0) throw new Refusal(partnersUnknown);
    const { partner, secretId } = authenticate(registry, secret, kind, Date.now(), refuse);
    ctx.state.partner = partner.id;
    options.noteAuthentic(ctx.req.socket);
    options.noteUse(partner.id, secretId);
    if (options.isShuttingDown()) throw new Refusal(shuttingDown);
    if (options.isOverloaded() || options.wasFrozen(ctx.req.socket)) throw new Refusal(overloaded);
    await spendToken(ctx, partner, options);
    const body = await readBody(ctx);
    const receivedAt = new Date().toISOString();
    const read = () =>
      readEvent(ctx, kind, body, (values) => options.chargePartner(partner, { bytes: body.bytes, values }));
    const { isDryRun, ...event } = await options.takeTurn(partner.id, body.bytes, read);
    // Its body may have waited, if not its headers.
    if (options.wasFrozen(ctx.req.socket)) throw new Refusal(overloaded);
    if (isDryRun) {
      ctx.state.answer = dryRunPassed;
      return;
    }
    if (!options.isQueueAvailable()) throw new Refusal(queueUnavailable);
    const eventId = createEventId();
    ctx.state.eventId = eventId;
    try {
      await options.enqueue({ eventId, kind, partner: partner.id, receivedAt, ...event });
    } catch (error) {
      throw new Refusal(queueUnavailable, { cause: error });
    }
    ctx.state.answer = accepted(eventId);
  };
}

/** Every authentic request takes one, dry runs and what is refused later too, before we do any work for it. */
async function spendToken(ctx: Context, partner: Partner, { limitPartner }: AppOptions): Promise<void> {
  const { retryAfterS, headers } = await limitPartner(partner);
  ctx.state.rateLimitHeaders = headers;
  if (retryAfterS !== undefined) throw new Refusal(overRateLimit(retryAfterS));
  if (ctx.req.destroyed) throw new ClientGone();
}

/** @param charge told how many JSON values the body has, also if it is refused later; 0: it can't be decoded */
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
  if (!result.success) throw new Refusal(invalidData(result.violationList));
  return result.payload;
}

/** The one place where a request gets its answer, its line in the log and its count, whatever happened to it. */
function answerRequests(options: AppOptions): Koa.Middleware<RequestState> {
  const { observe } = options;

  return async function answerRequest(ctx, next) {
    const startedAtMs = performance.now();
    // Koa's own way to send knows nothing of unread bodies, and its way to fail drops our headers.
    ctx.respond = false;
    let answer: Answer | undefined;
    let error: unknown;
    try {
      ctx.url = toOriginForm(ctx.req);
      await next();
      answer = ctx.state.answer ?? internalError;
    } catch (thrown) {
      error = thrown;
      answer = toAnswer(thrown);
    }
    // Sent already: the server answered in the app's place, while the body was still coming in.
    const wasSent = ctx.res.headersSent;
    const sending =
      answer !== undefined && !wasSent
        ? sendAnswer(ctx.res, answer, { headers: ctx.state.rateLimitHeaders })
        : undefined;
    observe({
      method: ctx.method,
      kind: matchedKind(ctx),
      partner: ctx.state.partner,
      eventId: ctx.state.eventId,
      status: wasSent ? ctx.status : answer?.status,
      outcome: wasSent ? "cut-off" : (answer?.outcome ?? "client-gone"),
      durationMs: performance.now() - startedAtMs,
      ...detailsForLog(ctx, error),
    });
    await sending;
  };
}

/** undefined: there is nobody to answer. */
function toAnswer(error: unknown): Answer | undefined {
  if (error instanceof Refusal) return error.answer;
  return error instanceof ClientGone ? undefined : internalError;
}

/** The router notes the routes whose path matched, whatever the method; undefined: none did. */
function matchedKind(ctx: Koa.ParameterizedContext<RequestState>): string | undefined {
  const { matched } = ctx;
  return matched?.[0]?.name;
}

function detailsForLog(ctx: Koa.ParameterizedContext<RequestState>, error: unknown): Partial<ObservedRequest> {
  if (error === undefined || error instanceof ClientGone) return {};
  if (error instanceof SecretRefused) {
    return { outcome: error.outcome, partner: error.partnerId, ip: ctx.ip, isSecretRefused: true };
  }
  // Whoever has shown a valid secret is known by its partner.
  const ip = ctx.state.partner === undefined ? ctx.ip : undefined;
  if (!(error instanceof Refusal)) return { ip, err: error };
  return { ip, cause: error.cause === undefined ? undefined : describeRootCause(error.cause) };
}

/** Such as `ReplyError OOM`: in an outage, the same stack on each line would bury everything else. */
function describeRootCause(error: unknown): string {
  if (error instanceof Error && error.cause !== undefined) return describeRootCause(error.cause);
  const { type, code } = describeError(error);
  return code === undefined ? type : `${type} ${code}`;
}

/**
 * The path and query of a request, from either form that RFC 9112 makes a server take.
 *
 * Nothing but a path may reach Koa and its router: they give anything else to Node's `url.parse`, which prints a URL
 * with a malformed port, secret and all, as a warning (DEP0170).
 */
function toOriginForm(req: IncomingMessage): string {
  const hostFault = findHostFault(req);
  if (hostFault !== undefined) throw new Refusal(hostFault);
  const path = /^(?:https?:\/\/[^/?#]*)?(\/[^#]*)$/i.exec(req.url ?? "")?.[1];
  if (path === undefined) throw new Refusal(notFound);
  return path;
}
