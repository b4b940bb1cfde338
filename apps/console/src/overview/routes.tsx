import { Readable } from "node:stream";
import type Router from "@koa/router";
import { renderToString } from "preact-render-to-string";
import type { ConsoleContext } from "../context.ts";
import { type PageState, showing } from "../server/page-routes.ts";
import { LiveOverview } from "./live-overview.ts";
import { OverviewPage, OverviewPart } from "./overview-page.tsx";

export function addOverviewRoutes(router: Router<PageState>, context: ConsoleContext): void {
  const { runbookUrl } = context;
  const live = new LiveOverview(context, (overview) =>
    renderToString(<OverviewPart overview={overview} runbookUrl={runbookUrl} />),
  );
  router.get(
    "/",
    showing(context, async ({ view }) => <OverviewPage view={view} overview={await live.read()} />),
  );
  router.get("/live/overview", (ctx) => {
    ctx.type = "text/event-stream; charset=utf-8";
    // Proxies must not wait for more.
    ctx.set("X-Accel-Buffering", "no");
    const ended = new AbortController();
    ctx.res.once("close", () => ended.abort());
    ctx.body = Readable.from(toEvents(live.follow(ended.signal)));
    ctx.flushHeaders();
  });
}

/** Of HTML, which has no line breaks but in texts: each line of an event has to say that it is data. */
async function* toEvents(parts: AsyncIterable<string>): AsyncGenerator<string> {
  yield ": begun\n\n";
  for await (const html of parts) yield `data: ${html.replaceAll("\n", "\ndata: ")}\n\n`;
}
