import type { Logger } from "@booking-events/runtime";
import Router from "@koa/router";
import Koa, { type Context, type Next } from "koa";
import type { ConsoleContext } from "../context.ts";
import { assignRoles } from "../login/assign-roles.ts";
import type { SealedCookies } from "../login/cookies.ts";
import type { Logins } from "../login/create-logins.ts";
import { readIdentityHeader } from "../login/identity-header.ts";
import { addLoginRoutes } from "../login/login-routes.tsx";
import { addOpenIdRoutes } from "../login/open-id-routes.tsx";
import type { Visitor } from "../login/roles.ts";
import type { Notice } from "../page/view.ts";
import { addPages } from "../pages.ts";
import { errorBoundary } from "./error-boundary.tsx";
import { logRequests } from "./log-requests.ts";
import { type PageState, Pages } from "./pages.ts";
import { Refusal } from "./refusal.ts";
import { requireOwnHost } from "./require-own-host.ts";
import { requireSameOrigin } from "./require-same-origin.ts";
import { setSecurityHeaders } from "./security-headers.ts";
import { serveAssets } from "./serve-assets.ts";

export interface AppOptions {
  context: ConsoleContext;
  logins: Logins;
  /** Of the console. Undefined: it is reached on its own machine only. */
  ownUrl: string | undefined;
  logger: Logger;
}

/** A request's way, from top to bottom. */
export function createApp({ context, logins, ownUrl, logger }: AppOptions): Koa {
  const open = new Router({ sensitive: true, strict: true });
  addLoginRoutes(open, logins);
  addOpenIdRoutes(open, logins, logger);
  const pages = new Router<PageState>({ sensitive: true, strict: true });
  addPages(new Pages(pages, context));

  const app = new Koa();
  // What happens after the boundary: a visitor who has gone before all was sent.
  app.on("error", (error: unknown) => logger.debug({ err: error }, "an answer could not be sent"));
  app.use(logRequests(logger));
  app.use(setSecurityHeaders);
  app.use(errorBoundary(logger));
  app.use(requireOwnHost(ownUrl));
  app.use(serveAssets);
  app.use(requireSameOrigin(ownUrl));
  app.use(open.routes());
  app.use(requireLogin(logins));
  app.use(passNotices(logins.cookies));
  app.use(pages.routes());
  return app;
}

function requireLogin(logins: Logins) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const visitor = findVisitor(ctx, logins);
    if (visitor === undefined) {
      if (ctx.method !== "GET") throw new Refusal(401, "Not logged in", "Your login has ended. Log in, and try again.");
      ctx.redirect(ctx.url === "/" ? "/login" : `/login?next=${encodeURIComponent(ctx.url)}`);
      return;
    }
    if (visitor.roles.length === 0)
      throw new Refusal(403, "No role", "You are known, and have no role here. Ask who runs this.");
    ctx.state["visitor"] = visitor;
    await next();
  };
}

/** @returns undefined: nobody has logged in here, and no proxy says who it is */
function findVisitor(ctx: Context, { sessions, header, lists }: Logins): Visitor | undefined {
  const visitor = sessions.read(ctx);
  if (visitor !== undefined || header === undefined) return visitor;
  const identity = readIdentityHeader(ctx.req, header);
  return identity && { name: identity.name, roles: assignRoles(identity, lists) };
}

const noticesCookie = "console-notices";
const noticesMs = 60_000;
/** Browsers drop cookies of more than four kilobytes. */
const maxNoticeLength = 600;
const maxNotices = 3;

/** What an action did is shown on the page that it leads to, and only there. */
function passNotices(cookies: SealedCookies) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const left = ctx.method === "GET" ? (cookies.read(ctx, noticesCookie) as Notice[] | undefined) : undefined;
    ctx.state["notices"] = left ?? [];
    ctx.state["leaveNotices"] = (notices: readonly Notice[]) => {
      const fitting = notices
        .slice(0, maxNotices)
        .map(({ tone, text }) => ({ tone, text: text.slice(0, maxNoticeLength) }));
      cookies.set(ctx, noticesCookie, fitting, noticesMs);
    };
    if (left !== undefined) cookies.clear(ctx, noticesCookie);
    await next();
  };
}
