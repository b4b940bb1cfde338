import type { IncomingMessage } from "node:http";
import { describeError, type Logger } from "@booking-events/runtime";
import { type Answer, answers } from "@booking-events/schema";
import type { Router } from "@koa/router";
import type Koa from "koa";
import { Refusal } from "../answers/refusal.ts";
import { requestIdOf } from "../answers/request-id.ts";
import { isStreamed, type PageAnswer, type StreamedAnswer, sendAnswer, sentCodeOf } from "../answers/send-answer.ts";
import type { ObservedRequest } from "../log/observed-request.ts";
import { SecretRefused } from "../partners/authenticate.ts";
import { allowOrigin } from "./allow-origin.ts";
import { findHostFault } from "./host-header.ts";
import { QuietKoa } from "./quiet-koa.ts";
import { toPath } from "./request-path.ts";
import { findSenderAddress, type SenderAddress } from "./sender-address.ts";

export interface RequestState {
  partner?: string;
  secretId?: string;
  rateLimitHeaders?: Answer["headers"];
  eventId?: string;
  answer?: Answer | PageAnswer | StreamedAnswer;
}

type ObserveOfApp<State> = (request: ObservedRequest, state: State) => void;

/** The client has disconnected, so there is nobody to answer. */
export class ClientGone extends Error {
  override name = "ClientGone";
}

/**
 * Creates a Koa app whose routes throw a Refusal, or set `ctx.state.answer`.
 *
 * @param options.router has a name for each route, which the log and the metrics show
 * @param options.observe called with each request, and what is known about it
 * @param options.unmatched returns or throws the answer to a request that no route takes; `route` is the name of the route whose
 *   path matches, if its method is the reason
 * @param options.docsOrigin whose pages may send requests and read the answers in a browser, besides our own
 */
export function createPartnerFacingApp<State extends RequestState>(options: {
  router: Router<State>;
  unmatched: (route: string | undefined, ctx: Koa.ParameterizedContext<State>) => Answer | PageAnswer;
  trustedProxyHops: number;
  docsOrigin?: string | undefined;
  observe: ObserveOfApp<State>;
  logger: Logger;
}): Koa<State> {
  const { router, trustedProxyHops, logger } = options;
  const app = new QuietKoa<State>();
  // The router reads the host of each request, although our routes apply to any. Koa would split the header.
  Object.defineProperty(app.context, "host", { value: "" });
  // Only errors after a response has been sent get here, and Koa would print them completely.
  app.on("error", (error) => logger.debug({ err: error }, "response failed"));
  // Koa's own takes any text of X-Forwarded-For as it is.
  Object.defineProperty(app.request, "ip", {
    get(this: Koa.Request) {
      return findSenderAddress(this.req, trustedProxyHops).ip ?? "";
    },
  });
  app.use(answerRequests(options.observe, options));
  app.use(router.routes());
  app.use((ctx) => {
    ctx.state.answer = options.unmatched(matchedRoute(ctx), ctx);
  });
  return app;
}

/** Sends the answer to every request, logs it and counts it, whatever happened to it. */
function answerRequests<State extends RequestState>(
  observe: ObserveOfApp<State>,
  { trustedProxyHops, docsOrigin }: { trustedProxyHops: number; docsOrigin?: string | undefined },
): Koa.Middleware<State> {
  return async function answerRequest(ctx, next) {
    const startedAtMs = performance.now();
    // Koa's own response handling ignores unread bodies, and its error handling drops our headers.
    ctx.respond = false;
    const { answer, error } = await findAnswer(ctx, next, docsOrigin);
    const sent = await sendFound(ctx, answer);
    const failure = sent.error ?? error;
    const isRefused = failure !== undefined && !(failure instanceof ClientGone);
    const findSender = () => findSenderAddress(ctx.req, trustedProxyHops);
    const request: ObservedRequest = {
      requestId: requestIdOf(ctx.req),
      method: ctx.method,
      kind: matchedRoute(ctx),
      partner: ctx.state.partner,
      secretId: ctx.state.secretId,
      eventId: ctx.state.eventId,
      status: sent.status,
      outcome: sent.outcome,
      durationMs: performance.now() - startedAtMs,
      ...(sent.isByServer ? findSender() : {}),
      ...(isRefused ? describeRefusal(failure, findSender()) : {}),
    };
    observe(request, ctx.state);
    await sent.rest;
  };
}

interface FoundAnswer {
  /** undefined if the client has disconnected. */
  answer: Answer | PageAnswer | StreamedAnswer | undefined;
  /** Why it is no other. */
  error?: unknown;
}

async function findAnswer<State extends RequestState>(
  ctx: Koa.ParameterizedContext<State>,
  next: Koa.Next,
  docsOrigin: string | undefined,
): Promise<FoundAnswer> {
  try {
    ctx.url = toOriginForm(ctx.req);
    const preflight = allowOrigin(ctx.req, ctx.res, docsOrigin);
    if (preflight !== undefined) return { answer: preflight };
    await next();
    return { answer: ctx.state.answer ?? answers.internalError };
  } catch (error) {
    return { answer: toAnswer(error), error };
  }
}

interface SentAnswer {
  status?: number | undefined;
  outcome: string;
  /** Whether the server answered instead of the app, while the body was still being received. */
  isByServer?: boolean;
  /** Why the answer was cut off. */
  error?: unknown;
  /** Resolves when the client has had time to read the answer. */
  rest?: Promise<void>;
}

async function sendFound(
  ctx: Koa.ParameterizedContext<RequestState>,
  answer: FoundAnswer["answer"],
): Promise<SentAnswer> {
  const { res, state } = ctx;
  const codeByServer = sentCodeOf(res);
  if (codeByServer !== undefined) return { status: res.statusCode, outcome: codeByServer, isByServer: true };
  if (answer === undefined) return { outcome: "client-gone" };
  const { status, code: outcome } = answer;
  const sending = sendAnswer(res, answer, { headers: state.rateLimitHeaders });
  if (!isStreamed(answer)) return { status, outcome, rest: sending };
  try {
    await sending;
    return { status, outcome };
  } catch (error) {
    // The client notices that the answer is not complete.
    res.destroy();
    return { status, outcome: "cut-off", error };
  }
}

/** Returns undefined if the client has disconnected. */
function toAnswer(error: unknown): Answer | undefined {
  if (error instanceof Refusal) return error.answer;
  return error instanceof ClientGone ? undefined : answers.internalError;
}

/**
 * Returns the name of the route that the path matches, whatever the method. Returns undefined if there is none. The
 * router stores the matching routes.
 */
function matchedRoute(ctx: Koa.ParameterizedContext<RequestState>): string | undefined {
  const { matched } = ctx;
  return matched?.[0]?.name;
}

function describeRefusal(error: unknown, sender: SenderAddress): Partial<ObservedRequest> {
  if (error instanceof SecretRefused) {
    const { outcome, partnerId: partner, secretId } = error;
    return { ...sender, outcome, partner, secretId, isSecretRefused: true };
  }
  if (!(error instanceof Refusal)) return { ...sender, err: error };
  const { cause, violations, subject } = error;
  return { ...sender, violations, subject, cause: cause === undefined ? undefined : describeRootCause(cause) };
}

/** For example `ReplyError OOM`. In an outage, a stack on each line would hide everything else. */
function describeRootCause(error: unknown): string {
  if (error instanceof Error && error.cause !== undefined) return describeRootCause(error.cause);
  const { type, code } = describeError(error);
  return code === undefined ? type : `${type} ${code}`;
}

/**
 * Only a path may reach Koa and its router. They pass anything else to Node's `url.parse`, which prints a URL with a
 * malformed port, including the secret, as a warning (DEP0170).
 */
function toOriginForm(req: IncomingMessage): string {
  const hostFault = findHostFault(req);
  if (hostFault !== undefined) throw new Refusal(hostFault);
  const path = toPath(req);
  if (path === undefined) throw new Refusal(answers.noSuchPath);
  return path;
}
