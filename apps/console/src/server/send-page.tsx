import type { Context } from "koa";
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { type View, ViewContext } from "../page/view.ts";

/** @param view null: the page needs none, since nobody has logged in */
export function sendPage(ctx: Pick<Context, "type" | "body">, page: VNode, view: View | null = null): void {
  ctx.type = "text/html; charset=utf-8";
  ctx.body = `<!doctype html>${renderInView(page, view)}`;
}

export function renderInView(page: VNode, view: View | null): string {
  return renderToString(<ViewContext.Provider value={view}>{page}</ViewContext.Provider>);
}
