import {
  type AdmissionOptions,
  admitPartner,
  createPartnerFacingApp,
  type ObserveRequest,
  Refusal,
  type RequestState,
} from "@booking-events/http";
import type { Logger } from "@booking-events/runtime";
import { answers, lookupAnswers } from "@booking-events/schema";
import { Router, type RouterContext } from "@koa/router";
import type Koa from "koa";
import { findReceipt, type ReceiptSources } from "./receipts/find-receipt.ts";

export interface AppOptions extends AdmissionOptions {
  receipts: ReceiptSources;
  trustedProxyHops: number;
  observe: ObserveRequest;
  logger: Logger;
}

type Context = RouterContext<RequestState>;

/** The questions that partners may ask. An empty secret matches too, because it is as invalid as any other. */
export function createApp(options: AppOptions): Koa<RequestState> {
  const { trustedProxyHops, observe, logger } = options;
  const router = new Router<RequestState>({ sensitive: true, strict: true });
  router.get("receipt", "/booking-event/receipt/{:secret}/:eventId", answerReceipt(options));
  return createPartnerFacingApp({
    router,
    unmatched: (question) =>
      question === undefined ? lookupAnswers.noSuchPath : answers.methodNotAllowed("GET", "HEAD"),
    ...{ trustedProxyHops, observe, logger },
  });
}

function answerReceipt(options: AppOptions): (ctx: Context) => Promise<void> {
  return async function answer(ctx) {
    const { partner } = await admitPartner(ctx, null, options);
    const { eventId = "" } = ctx.params;
    const receipt = await orUnavailable(findReceipt(options.receipts, partner.id, eventId));
    if (receipt === undefined) throw new Refusal(lookupAnswers.noSuchEvent);
    ctx.state.eventId = receipt.eventId;
    ctx.state.answer = lookupAnswers.receiptFound(receipt);
  };
}

/** An outage of Redis or PostgreSQL is never the partner's fault. */
async function orUnavailable<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    throw new Refusal(lookupAnswers.unavailable, { cause });
  }
}
