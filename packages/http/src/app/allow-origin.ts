import type { IncomingMessage, ServerResponse } from "node:http";
import type { Answer } from "@booking-events/schema";

/** What "Try it" on the pages of `/docs` sends. */
const allowed = {
  "Access-Control-Allow-Methods": "GET, POST",
  "Access-Control-Allow-Headers": "Authorization, Content-Type",
  "Access-Control-Max-Age": "600",
};
/** What it shows of the answer, besides the body. */
const shownHeaders = "X-Request-Id, RateLimit, RateLimit-Policy, Retry-After";

export const preflightCode = "preflight";

/**
 * Lets the pages of exactly this origin send requests and read the answers, refusals among them, without cookies. Browsers
 * show the answers to no other page.
 *
 * @returns the answer if the browser only asks what it may send
 */
export function allowOrigin(req: IncomingMessage, res: ServerResponse, origin: string | undefined): Answer | undefined {
  if (origin === undefined || req.headers.origin !== origin) return undefined;
  res.setHeader("Access-Control-Allow-Origin", origin);
  res.setHeader("Access-Control-Expose-Headers", shownHeaders);
  const isQuestion = req.method === "OPTIONS" && req.headers["access-control-request-method"] !== undefined;
  return isQuestion ? { status: 200, code: preflightCode, body: "", headers: allowed } : undefined;
}
