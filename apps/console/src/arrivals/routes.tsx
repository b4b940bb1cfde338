import { findArrivals } from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { type PageState, showing } from "../server/page-routes.ts";
import { ArrivalsPage, defaultWindow, type Window, windows } from "./arrivals-page.tsx";

const hourMs = 3_600_000;
const windowMs: Record<Window, number> = {
  "12h": 12 * hourMs,
  "24h": 24 * hourMs,
  "48h": 48 * hourMs,
  "7d": 168 * hourMs,
};
const maxGuests = 200;

export function addArrivalRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/arrivals",
    showing(context, async ({ view, operations, query }) => {
      const within = windows.find((one) => one === query.get("within")) ?? defaultWindow;
      const partner = query.get("partner")?.trim() || undefined;
      const arrivals = await findArrivals(operations, { withinMs: windowMs[within], partner, limit: maxGuests });
      return <ArrivalsPage view={view} arrivals={arrivals} within={within} query={query} />;
    }),
  );
}
