import type { ServerResponse } from "node:http";
import {
  type AdmissionOptions,
  admitPartner,
  answerWithPage,
  createPartnerFacingApp,
  expectsContinue,
  type ObserveRequest,
  type Pages,
  Refusal,
  type RequestState,
  requireNdjson,
} from "@booking-events/http";
import type { QueueReader } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";
import { answers, lookupAnswers } from "@booking-events/schema";
import { Router, type RouterContext } from "@koa/router";
import type Koa from "koa";
import { readActivityWindow } from "./activity/activity-window.ts";
import { describeActivity } from "./activity/describe-activity.ts";
import type { ActivityReader } from "./activity/read-activity.ts";
import { describeBooking, readBookingQuery } from "./bookings/describe-booking.ts";
import { readWantedReadings } from "./bookings/read-wanted-readings.ts";
import { orUnavailable } from "./or-unavailable.ts";
import type { PartnerData } from "./partner-data.ts";
import { readParameters } from "./read-parameters.ts";
import { findReceipt } from "./receipts/find-receipt.ts";
import type { ListsUnderWay } from "./reconcile/lists-under-way.ts";
import { reconcile } from "./reconcile/reconcile.ts";

export interface AppOptions extends AdmissionOptions {
  /** @throws if the queue cannot be read */
  findWaiting: QueueReader["findEvent"];
  data: PartnerData;
  activity: Pick<ActivityReader, "read">;
  lists: ListsUnderWay;
  /** Says that a list has a pace of its own, so no other limit of time applies until the returned function is called. */
  markPaced: (response: ServerResponse) => () => void;
  pages: Pages;
  /** Whether a partner may ask what was read of its booking's fields. */
  returnsReadings: boolean;
  /** Whether no question may be answered, since lookup does not know enough, or has the wrong database. */
  isUnavailable: () => boolean;
  trustedProxyHops: number;
  /** Whose pages may read the answers in a browser. */
  docsOrigin?: string | undefined;
  observe: ObserveRequest;
  logger: Logger;
}

type Context = RouterContext<RequestState>;

/** The questions that partners may ask. An empty or missing secret matches too, because it is as invalid as any other. */
export function createApp(options: AppOptions): Koa<RequestState> {
  const { trustedProxyHops, docsOrigin, observe, logger } = options;
  const router = new Router<RequestState>({ sensitive: true, strict: true });
  router.get("receipt", "/booking-event/receipt{/{:secret}}/:eventId", answerReceipt(options));
  router.get("booking", "/booking-event/booking{/{:secret}{/}}", answerBooking(options));
  router.post("reconcile", "/booking-event/reconcile{/{:secret}{/}}", answerList(options));
  router.get("activity", "/booking-event/activity{/{:secret}{/}}", answerActivity(options));
  return createPartnerFacingApp({
    router,
    unmatched: (question, ctx) => {
      const page = answerWithPage(options.pages, ctx.path, ctx.req);
      if (page !== undefined) return page;
      if (question === undefined) throw new Refusal(lookupAnswers.noSuchPath);
      throw new Refusal(question === "reconcile" ? answers.wrongMethod("POST") : answers.wrongMethod("GET", "HEAD"));
    },
    trustedProxyHops,
    docsOrigin,
    observe,
    logger,
  });
}

/** What a secret must be allowed to send to the path with this segment before the secret; undefined: it takes no body. */
export function kindOfPath(segment: string): null | undefined {
  return segment === "reconcile" ? null : undefined;
}

function answerReceipt(options: AppOptions): (ctx: Context) => Promise<void> {
  return async function answer(ctx) {
    const { partner } = await admit(ctx, options);
    const { eventId = "" } = ctx.params;
    const sources = { findWaiting: options.findWaiting, findRecorded: options.data.findRecorded };
    const receipt = await orUnavailable(findReceipt(sources, partner.id, eventId));
    if (receipt === undefined) throw new Refusal(lookupAnswers.noSuchEvent);
    ctx.state.eventId = receipt.eventId;
    ctx.state.answer = lookupAnswers.receiptFound(receipt);
  };
}

function answerBooking(options: AppOptions): (ctx: Context) => Promise<void> {
  return async function answer(ctx) {
    const { partner } = await admit(ctx, options);
    const query = readBookingQuery(ctx.querystring);
    const readings = readWantedReadings(ctx.querystring);
    if (readings.length > 0 && !options.returnsReadings) throw new Refusal(lookupAnswers.readingsOff);
    const booking = await orUnavailable(options.data.findBooking(partner.id, { ...query, readings }));
    if (booking === undefined) throw new Refusal(lookupAnswers.noSuchBooking);
    ctx.state.answer = lookupAnswers.bookingFound(describeBooking(booking));
  };
}

function answerActivity(options: AppOptions): (ctx: Context) => Promise<void> {
  return async function answer(ctx) {
    const { partner, secretId } = await admit(ctx, options);
    const now = new Date();
    const window = readActivityWindow(ctx.querystring, now);
    const known = await orUnavailable(options.activity.read(partner, window));
    ctx.state.answer = lookupAnswers.activityFound(describeActivity(known, { partner, secretId, window, now }));
  };
}

function answerList(options: AppOptions): (ctx: Context) => Promise<void> {
  return async function answer(ctx) {
    const { partner } = await admit(ctx, options);
    requireNdjson(ctx.req);
    const mayBeEmpty = readParameters(ctx.querystring)("allowEmpty").at(-1) === "true";
    const hold = options.lists.begin(partner.id, ctx.res);
    if (expectsContinue(ctx.req)) ctx.res.writeContinue();
    const { isShuttingDown } = options;
    const limitTime = options.markPaced(ctx.res);
    try {
      ctx.state.answer = await reconcile(options.data, partner.id, { req: ctx.req, hold, mayBeEmpty, isShuttingDown });
    } finally {
      limitTime();
    }
  };
}

/** @throws Refusal */
async function admit(ctx: Context, options: AppOptions): ReturnType<typeof admitPartner> {
  const admitted = await admitPartner(ctx, null, options);
  if (options.isUnavailable()) throw new Refusal(lookupAnswers.lookupUnavailable);
  return admitted;
}
