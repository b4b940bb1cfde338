import type { Context } from "koa";
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";

export function sendPage(ctx: Pick<Context, "type" | "body">, page: VNode): void {
  ctx.type = "text/html; charset=utf-8";
  ctx.body = `<!doctype html>${renderToString(page)}`;
}
