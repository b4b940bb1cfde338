import type { Context, Next } from "koa";

/** Pages load nothing but our own assets, from here, and run no code that stands in them. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

export async function setSecurityHeaders(ctx: Context, next: Next): Promise<void> {
  ctx.set({
    "Content-Security-Policy": contentSecurityPolicy,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    // Pages hold guests' data, which no cache may keep.
    "Cache-Control": "no-store",
  });
  await next();
}
