/** Ingest as the documentation of Koa, its router, koa-body, valibot and BullMQ suggests. */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { validatePayload } from "@booking-events/schema";
import Router from "@koa/router";
import { Queue } from "bullmq";
import Koa from "koa";
import { koaBody } from "koa-body";
import { findPartner } from "./secrets.ts";
import { redisOptions, serve } from "./serve.ts";

const queue = new Queue("events", { connection: redisOptions(), prefix: process.env["QUEUE_PREFIX"] ?? "" });
const app = new Koa();
const router = new Router();

for (const kind of ["create", "update", "delete"] as const) {
  router.post(`/booking-event/${kind}/:secret`, koaBody(), async (ctx) => {
    const partner = findPartner(ctx["params"]["secret"] ?? "");
    if (partner === undefined) {
      ctx.status = 403;
      ctx.body = { message: "Invalid secret" };
      return;
    }
    const result = validatePayload(kind, ctx.request.body);
    if (!result.success) {
      ctx.status = 422;
      ctx.body = { message: "Invalid data", violationList: result.violationList };
      return;
    }
    const eventId = randomUUID();
    await queue.add(
      kind,
      { eventId, kind, partner, receivedAt: new Date().toISOString(), payload: result.payload },
      { jobId: eventId, attempts: 15, backoff: { type: "exponential", delay: 1_000 }, removeOnComplete: true },
    );
    ctx.body = { success: true, eventId };
  });
}
app.use(router.routes()).use(router.allowedMethods());
await queue.waitUntilReady();
serve(createServer(app.callback()), () => queue.close());
