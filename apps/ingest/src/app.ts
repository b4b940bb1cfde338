import {
  type AdmissionOptions,
  admitPartner,
  answerWithPage,
  createPartnerFacingApp,
  isChunked,
  type ObserveRequest,
  type Pages,
  type PartnerLimiter,
  Refusal,
  type RequestState,
  requestIdOf,
  takeBytesRead,
} from "@booking-events/http";
import type { Producer } from "@booking-events/queue";
import type { Logger, Span, Tracing } from "@booking-events/runtime";
import {
  answers,
  type BookingPayload,
  countJsonValues,
  type EventKind,
  eventKinds,
  type FieldWarning,
  findWarnings,
  limitWarnings,
  validatePayload,
} from "@booking-events/schema";
import { Router, type RouterContext } from "@koa/router";
import type Koa from "koa";
import { ArrivingBytes } from "./body/arriving-bytes.ts";
import type { BodyObject } from "./body/decode-body.ts";
import { readEventOptions } from "./body/event-options.ts";
import { type Body, createBodyReader, type ReadBody } from "./body/read-body.ts";
import type { Turns } from "./load/take-turns.ts";
import type { ConvertedMidnights } from "./observe/converted-midnights.ts";
import type { CountUnknownFields } from "./observe/count-unknown-fields.ts";
import { describeViolations } from "./observe/count-violations.ts";
import type { RecordWarnings } from "./observe/record-warnings.ts";
import { endRequestSpan, enqueueTraced, startRequestSpan } from "./observe/trace-requests.ts";

export interface AppOptions extends AdmissionOptions {
  limiter: Pick<PartnerLimiter, "take" | "charge" | "count">;
  turns: Pick<Turns, "take">;
  enqueue: Producer["enqueue"];
  countUnknownFields: CountUnknownFields;
  convertedMidnights: Pick<ConvertedMidnights, "check">;
  recordWarnings: RecordWarnings;
  /** False if Redis is known to be down, or unable to store events safely. */
  isQueueAvailable: () => boolean;
  /** Static pages, found after every other route, so that events do not pay for them. */
  pages: Pages;
  /** Where lookup is, for those who ask here. */
  lookupUrl?: string | undefined;
  bodyLimitBytes: number;
  trustedProxyHops: number;
  observe: ObserveRequest;
  tracing?: Tracing | undefined;
  logger: Logger;
}

interface State extends RequestState {
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
    observe(request, { span }) {
      options.observe(request);
      if (span !== undefined) endRequestSpan(span, request);
    },
    trustedProxyHops,
    logger,
  });
}

/** These paths are lookup's. A proxy in front of both sends them there. */
function isForLookup(path: string): boolean {
  return /^\/booking-event\/(receipt|booking|reconcile|activity)(\/|$)/.test(path);
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
  return router;
}

/** Which kind of event is sent to the path with this segment before the secret. */
export function kindOfPath(segment: string): EventKind | undefined {
  return eventKinds.find((kind) => kind === segment);
}

/** Receives an event, from checking the secret to queueing. Each step throws a Refusal to end the request. */
function receiveEvents(kind: EventKind, readBody: ReadBody, options: AppOptions): (ctx: Context) => Promise<void> {
  return async function receiveEvent(ctx) {
    const { partner, secretId } = await admitPartner(ctx, kind, options, () => {
      ctx.state.span = startRequestSpan(options.tracing, ctx.req, kind);
    });
    const defaultCountry = partner.country ?? null;
    const body = await readBody(ctx, partner.id).catch((error) => {
      chargeRefusedBody(ctx, (bytes) => options.limiter.charge(partner, bytes, 0));
      throw error;
    });
    const receivedAt = new Date().toISOString();
    const bytesRead = takeBytesRead(ctx.req.socket);
    const bytes = isChunked(ctx.req) ? bytesRead : body.bytes;
    const read = () =>
      readEvent(ctx, { kind, defaultCountry }, body, (values) => options.limiter.charge(partner, bytes, values));
    const accepted = await options.turns.take(partner.id, body.bytes, read);
    const { payload, payloadJson, idempotencyKey, isDryRun } = accepted;
    options.countUnknownFields(partner.id, payload);
    // The dates of a delete are not applied.
    const midnights = kind === "delete" ? [] : options.convertedMidnights.check(partner.id, payload);
    const warnings = limitWarnings([...accepted.warnings, ...midnights]);
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
    const event = {
      ...{ eventId, kind, ...source, receivedAt, idempotencyKey, payload, payloadJson },
      warnings: listCodes(warnings),
    };
    try {
      await enqueueTraced(options.enqueue, event, ctx.state.span);
    } catch (error) {
      throw new Refusal(answers.queueUnavailable, { cause: error });
    }
    options.limiter.count(partner, body.bytes);
    ctx.state.answer = answers.accepted(eventId, warnings);
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
  ctx: Context,
  { kind, defaultCountry }: { kind: EventKind; defaultCountry: string | null },
  body: Body,
  charge: (values: number) => void,
) {
  let values = 0;
  try {
    const decoded = body.decode();
    values = countJsonValues(decoded.object);
    const { idempotencyKey, isDryRun, ...options } = readEventOptions(ctx.req);
    const payload = checkPayload(kind, decoded.object);
    const likelyMistakes = findWarnings(kind, payload, { defaultCountry });
    const warnings = [...decoded.warnings, ...options.warnings, ...likelyMistakes];
    return { idempotencyKey, isDryRun, payload, payloadJson: decoded.json, warnings };
  } finally {
    charge(values);
  }
}

/** Returns undefined if there are none, so that most events carry nothing. */
function listCodes(warnings: FieldWarning[]): string[] | undefined {
  return warnings.length === 0 ? undefined : [...new Set(warnings.map(({ code }) => code))];
}

function checkPayload(kind: EventKind, object: BodyObject): BookingPayload {
  const result = validatePayload(kind, object);
  if (result.success) return result.payload;
  const { violationList } = result;
  throw new Refusal(answers.invalidData(violationList), { violations: describeViolations(violationList) });
}
