import { Readable } from "node:stream";
import type { Pages } from "../server/pages.ts";
import { renderInView } from "../server/send-page.tsx";
import { LiveOverview } from "./live-overview.ts";
import { OverviewPage, OverviewPart } from "./overview-page.tsx";

export function addOverviewPages(pages: Pages): void {
  const { runbookUrl } = pages.context;
  // It is the same for all who look.
  const nobody = { name: "", roles: [], path: "/", notices: [], runbookUrl };
  const live = new LiveOverview(pages.context, (overview) =>
    renderInView(<OverviewPart overview={overview} />, { ...nobody, now: overview.at }),
  );
  pages.show("/", async () => <OverviewPage overview={await live.read()} />);
  pages.router.get("/live/overview", (ctx) => {
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
