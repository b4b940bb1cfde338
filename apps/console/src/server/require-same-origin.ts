import type { Context, Next } from "koa";
import { Refusal } from "./refusal.ts";

/** Refuses what another site makes a visitor's browser post. Browsers say where a post comes from, and pages cannot lie. */
export function requireSameOrigin(ownUrl: string | undefined) {
  return async (ctx: Context, next: Next): Promise<void> => {
    if (ctx.method !== "GET" && ctx.method !== "HEAD" && !isFromHere(ctx, ownUrl))
      throw new Refusal(
        403,
        "Not from here",
        "This was not sent by a page of the console. Open the page here, and try again.",
      );
    await next();
  };
}

function isFromHere(ctx: Context, ownUrl: string | undefined): boolean {
  const site = ctx.get("sec-fetch-site");
  if (site !== "") return site === "same-origin";
  // Over http, browsers say only this, except on this machine.
  const origin = ctx.get("origin");
  if (ownUrl !== undefined) return origin === new URL(ownUrl).origin;
  return URL.canParse(origin) && new URL(origin).host === ctx.host;
}
