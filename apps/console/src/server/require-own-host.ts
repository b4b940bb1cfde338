import type { Context, Next } from "koa";
import { Refusal } from "./refusal.ts";

/**
 * Refuses requests for other names than ours. Otherwise another site could give its name our address, and its pages could
 * talk to us as if they were ours.
 *
 * @param ownUrl undefined: it is reached on this machine only
 */
export function requireOwnHost(ownUrl: string | undefined) {
  const isOwn = ownUrl === undefined ? isLoopback : (host: string) => host === new URL(ownUrl).host;
  return async (ctx: Context, next: Next): Promise<void> => {
    const named = ctx.req.headersDistinct["host"] ?? [];
    if (named.length !== 1 || !isOwn(ctx.host.toLowerCase()))
      throw new Refusal(
        421,
        "Not this address",
        "The console does not answer to this name. Open it as CONSOLE_URL says, or on its own machine as localhost.",
      );
    await next();
  };
}

function isLoopback(host: string): boolean {
  return /^(localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(:\d{1,5})?$/.test(host);
}
