import type { Logger } from "@booking-events/runtime";
import type { RouterContext } from "@koa/router";
import type { Next } from "koa";

/** Logs each request by its route's pattern: paths and queries name bookings, and what guests are searched by. */
export function logRequests(logger: Logger) {
  return async (ctx: RouterContext, next: Next): Promise<void> => {
    const beganAtMs = performance.now();
    await next();
    const durationMs = performance.now() - beganAtMs;
    const route = ctx.routerPath ?? (ctx.path.startsWith("/assets/") ? "/assets" : "none");
    logger.info(
      {
        method: toMethod(ctx.method),
        route: String(ctx._matchedRoute ?? route),
        status: ctx.status,
        durationMs: Math.round(10 * durationMs) / 10,
      },
      "request",
    );
  };
}

/** Anyone may make up methods. */
function toMethod(method: string): string {
  return ["GET", "HEAD", "POST"].includes(method) ? method : "other";
}
