import { findArrivals } from "@booking-events/operations";
import type { Pages } from "../server/pages.ts";
import { ArrivalsPage, defaultWindow, type Window, windows } from "./arrivals-page.tsx";

const hourMs = 3_600_000;
const windowMs: Record<Window, number> = {
  "12h": 12 * hourMs,
  "24h": 24 * hourMs,
  "48h": 48 * hourMs,
  "7d": 168 * hourMs,
};
const maxGuests = 200;

export function addArrivalPages(pages: Pages): void {
  pages.show("/arrivals", async ({ operations, query, given }) => {
    const within = windows.find((one) => one === given("within")) ?? defaultWindow;
    const filter = { withinMs: windowMs[within], partner: given("partner"), limit: maxGuests };
    return <ArrivalsPage arrivals={await findArrivals(operations, filter)} within={within} query={query} />;
  });
}
