import type { Logger } from "@booking-events/runtime";
import type Router from "@koa/router";
import type { Context } from "koa";
import { Refusal } from "../server/refusal.ts";
import { assignRoles } from "./assign-roles.ts";
import type { Logins } from "./create-logins.ts";
import { toLocalPath } from "./local-path.ts";
import { type LoginAttempt, type OpenIdProvider, UnusableLogin } from "./open-id.ts";

interface OpenIdLogins extends Logins {
  provider: OpenIdProvider;
  logger: Logger;
}

const cookie = "console-login";
/** As long as somebody may take to log in with the provider. */
const attemptMs = 10 * 60_000;

interface KeptAttempt extends LoginAttempt {
  next: string;
  endsAtMs: number;
}

/** Logging in with a provider of OpenID Connect: there, and back again. */
export function addOpenIdRoutes(router: Router, logins: Logins, logger: Logger): void {
  const { openId: provider } = logins;
  if (provider === undefined) return;
  router.get("/login/openid", (ctx) => leave(ctx, { ...logins, provider, logger }));
  router.get("/login/callback", (ctx) => comeBack(ctx, { ...logins, provider, logger }));
}

async function leave(ctx: Context, { provider, cookies, now, logger }: OpenIdLogins): Promise<void> {
  const { url, attempt } = await provider.begin().catch((error: unknown) => {
    logger.warn({ err: error }, "the provider of OpenID Connect cannot be used");
    throw new Refusal(503, "Not available now", "The login provider can't be reached. Try again in a minute.");
  });
  const kept: KeptAttempt = {
    ...attempt,
    next: toLocalPath(ctx.URL.searchParams.get("next")),
    endsAtMs: now().getTime() + attemptMs,
  };
  cookies.set(ctx, cookie, kept, attemptMs);
  ctx.redirect(url.href);
}

async function comeBack(
  ctx: Context,
  { provider, sessions, cookies, lists, now, logger }: OpenIdLogins,
): Promise<void> {
  const attempt = cookies.read(ctx, cookie) as KeptAttempt | undefined;
  // Each is good for one login.
  cookies.clear(ctx, cookie);
  if (attempt === undefined || attempt.endsAtMs <= now().getTime())
    throw new Refusal(400, "Not logged in", "This login was not begun here, or too long ago. Begin again.");
  const identity = await provider.finish(ctx.URL.searchParams, attempt).catch((error: unknown) => {
    logger.warn({ err: error }, "a login by OpenID Connect failed");
    const why = error instanceof UnusableLogin ? error.message : "The login could not be completed.";
    throw new Refusal(403, "Not logged in", `${why} Begin again.`);
  });
  const roles = assignRoles(identity, lists);
  if (roles.length === 0)
    throw new Refusal(403, "No role", "You are logged in with the provider, and have no role here. Ask who runs this.");
  sessions.begin(ctx, { name: identity.name, roles });
  ctx.redirect(toLocalPath(attempt.next));
  ctx.status = 303;
}
