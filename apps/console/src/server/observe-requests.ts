import { Histogram, type Logger, type Registry } from "@booking-events/runtime";
import type { RouterContext } from "@koa/router";
import type { Next } from "koa";

/** Pages take a few milliseconds, those that ask a slow database up to seconds. */
const buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Logs and counts each request by its route's pattern: paths and queries name bookings, and what guests are searched by.
 */
export function observeRequests(logger: Logger, registry: Registry) {
  const durations = new Histogram({
    name: "console_request_duration_seconds",
    help: "Time until the answer to a request is ready, by the route's pattern and the status.",
    labelNames: ["method", "route", "status"],
    buckets,
    registers: [registry],
  });
  return async (ctx: RouterContext, next: Next): Promise<void> => {
    const beganAtMs = performance.now();
    await next();
    const durationMs = performance.now() - beganAtMs;
    const route = ctx.routerPath ?? (ctx.path.startsWith("/assets/") ? "/assets" : "none");
    const labels = {
      method: toMethod(ctx.method),
      route: String(ctx._matchedRoute ?? route),
      status: String(ctx.status),
    };
    durations.observe(labels, durationMs / 1_000);
    logger.info({ ...labels, status: ctx.status, durationMs: Math.round(10 * durationMs) / 10 }, "request");
  };
}

/** Anyone may make up methods, and each is a series. */
function toMethod(method: string): string {
  return ["GET", "HEAD", "POST"].includes(method) ? method : "other";
}
