import { addArrivalPages } from "./arrivals/pages.tsx";
import { addAuditPages } from "./audit/pages.tsx";
import { addBookingPages } from "./bookings/pages.tsx";
import { addEventPages } from "./events/pages.tsx";
import { addOverviewPages } from "./overview/pages.tsx";
import { addPartnerPages } from "./partners/pages.tsx";
import { addRestorePages } from "./restore/pages.tsx";
import { addSearchPages } from "./search/pages.tsx";
import type { Pages } from "./server/pages.ts";
import { addStuckPages } from "./stuck/pages.tsx";
import { addSubscriptionPages } from "./subscriptions/pages.tsx";
import { addTaskPages } from "./tasks/pages.tsx";

/** All pages that need a login. */
export function addPages(pages: Pages): void {
  addOverviewPages(pages);
  addArrivalPages(pages);
  addBookingPages(pages);
  addEventPages(pages);
  addStuckPages(pages);
  addRestorePages(pages);
  addTaskPages(pages);
  addSearchPages(pages);
  addPartnerPages(pages);
  addSubscriptionPages(pages);
  addAuditPages(pages);
}
