import type { IncomingMessage } from "node:http";
import {
  admitPartner,
  answerWithPage,
  createPartnerFacingApp,
  isChunked,
  type ObserveRequest,
  type Pages,
  Refusal,
  requestIdOf,
  takeBytesRead,
} from "@booking-events/http";
import type { Logger, Span, Tracing } from "@booking-events/runtime";
import { answers, countJsonValues, type EventKind, eventKinds } from "@booking-events/schema";
import { Router, type RouterContext } from "@koa/router";
import type Koa from "koa";
import { type BatchOptions, type BatchState, receiveBatches } from "./batch/receive-batch.ts";
import { ArrivingBytes } from "./body/arriving-bytes.ts";
import { readEventOptions } from "./body/event-options.ts";
import { type Body, createBodyReader, type ReadBody } from "./body/read-body.ts";
import { judgeEvent, listCodes, type SentEvent } from "./events/judge-event.ts";
import { endRequestSpan, enqueueTraced, startRequestSpan } from "./observe/trace-requests.ts";

export interface AppOptions extends BatchOptions {
  /** Static pages, found after every other route, so that events do not pay for them. */
  pages: Pages;
  /** Where lookup is, for those who ask here. */
  lookupUrl?: string | undefined;
  trustedProxyHops: number;
  observe: ObserveRequest;
  tracing?: Tracing | undefined;
  logger: Logger;
}

interface State extends BatchState {
  span?: Span | undefined;
}

type Context = RouterContext<State>;

export function createApp(options: AppOptions): Koa<State> {
  const { pages, lookupUrl, trustedProxyHops, logger } = options;
  return createPartnerFacingApp<State>({
    router: createRouter(options),
    unmatched(kind, ctx) {
      const page = answerWithPage(pages, ctx.path, ctx.req);
      if (page !== undefined) return page;
      if (isForLookup(ctx.path)) throw new Refusal(answers.askLookup(lookupUrl));
      throw new Refusal(kind === undefined ? answers.noSuchPath : answers.wrongMethod("POST"));
    },
    observe(request, { span, lines, endedBy }) {
      options.observe(lines === undefined ? request : { ...request, lines, outcome: endedBy ?? request.outcome });
      if (span !== undefined) endRequestSpan(span, request);
    },
    trustedProxyHops,
    logger,
  });
}

/** These paths are lookup's. A proxy in front of both sends them there. */
function isForLookup(path: string): boolean {
  return /^\/(activity|booking-event\/(receipt|booking|reconcile|activity))(\/|$)/.test(path);
}

/**
 * Creates one route for each kind. The secret may be in a header instead. A slash after it is ignored. An empty or missing
 * secret matches too, because it is as invalid as any other.
 */
function createRouter(options: AppOptions): Router<State> {
  const router = new Router<State>({ sensitive: true, strict: true });
  const readBody = createBodyReader(options.bodyLimitBytes, new ArrivingBytes());
  for (const kind of eventKinds) {
    router.post(kind, `/booking-event/${kind}{/{:secret}{/}}`, receiveEvents(kind, readBody, options));
  }
  router.post("batch", "/booking-event/batch{/{:secret}{/}}", receiveBatches(options));
  return router;
}

/** Which kind of event is sent to the path with this segment before the secret; null: any. */
export function kindOfPath(segment: string): EventKind | null | undefined {
  return segment === "batch" ? null : eventKinds.find((kind) => kind === segment);
}

/** Receives an event, from checking the secret to queueing. Each step throws a Refusal to end the request. */
function receiveEvents(kind: EventKind, readBody: ReadBody, options: AppOptions): (ctx: Context) => Promise<void> {
  return async function receiveEvent(ctx) {
    const { partner, secretId } = await admitPartner(ctx, kind, options, () => {
      ctx.state.span = startRequestSpan(options.tracing, ctx.req, kind);
    }).catch((error) => {
      takeBytesRead(ctx.req.socket);
      throw error;
    });
    const body = await readBody(ctx, partner.id).catch((error) => {
      chargeRefusedBody(ctx, (bytes) => options.limiter.charge(partner, bytes, 0));
      throw error;
    });
    const receivedAt = new Date().toISOString();
    const bytesRead = takeBytesRead(ctx.req.socket);
    const bytes = isChunked(ctx.req) ? bytesRead : body.bytes;
    const { isDryRun, warnings, ...judged } = await options.turns.take(partner.id, body.bytes, () => {
      const charge = (values: number) => options.limiter.charge(partner, bytes, values);
      const { isDryRun, ...sent } = readEvent(ctx.req, kind, body, charge);
      return { isDryRun, ...judgeEvent(sent, partner, options) };
    });
    // The body may have waited even if the headers have not.
    if (options.isLate(ctx.req.socket)) throw new Refusal(answers.overloaded);
    if (isDryRun) {
      ctx.state.answer = answers.dryRunPassed(warnings);
      options.recordWarnings(partner.id, null, warnings);
      return;
    }
    if (!options.isQueueAvailable()) throw new Refusal(answers.queueUnavailable);
    const eventId = requestIdOf(ctx.req);
    ctx.state.eventId = eventId;
    const source = { partner: partner.id, defaultCountry: partner.country, secretId };
    const event = { ...judged, ...source, eventId, receivedAt, warnings: listCodes(warnings) };
    try {
      await enqueueTraced(options.enqueue, event, ctx.state.span);
    } catch (error) {
      throw new Refusal(answers.queueUnavailable, { cause: error });
    }
    options.limiter.count(partner, body.bytes);
    ctx.state.answer = answers.accepted(eventId, warnings, event);
    options.recordWarnings(partner.id, eventId, warnings);
  };
}

/** A refused body costs what is read of it, even after the answer. */
function chargeRefusedBody({ req, res }: Context, charge: (bytes: number) => void): void {
  const chargeBytes = () => charge(takeBytesRead(req.socket));
  if (res.closed) chargeBytes();
  else res.once("close", chargeBytes);
}

/** @param charge called with the number of JSON values in the body, even if it is refused; 0 if it can't be decoded */
function readEvent(
  req: IncomingMessage,
  kind: EventKind,
  body: Body,
  charge: (values: number) => void,
): SentEvent & { isDryRun: boolean } {
  let values = 0;
  try {
    const { object, json, warnings } = body.decode();
    values = countJsonValues(object);
    const options = readEventOptions(req);
    return { ...options, kind, object, json, warnings: [...warnings, ...options.warnings] };
  } finally {
    charge(values);
  }
}
