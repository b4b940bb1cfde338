import type Router from "@koa/router";
import { addArrivalRoutes } from "./arrivals/routes.tsx";
import { addAuditRoutes } from "./audit/routes.tsx";
import { addBookingRoutes } from "./bookings/routes.tsx";
import type { ConsoleContext } from "./context.ts";
import { addEventRoutes } from "./events/routes.tsx";
import { addOverviewRoutes } from "./overview/routes.tsx";
import { addPartnerRoutes } from "./partners/routes.tsx";
import { addRestoreRoutes } from "./restore/routes.tsx";
import { addSearchRoutes } from "./search/routes.tsx";
import type { PageState } from "./server/page-routes.ts";
import { addStuckRoutes } from "./stuck/routes.tsx";
import { addSubscriptionRoutes } from "./subscriptions/routes.tsx";
import { addTaskRoutes } from "./tasks/routes.tsx";

/** All pages that need a login. */
export function addRoutes(router: Router<PageState>, context: ConsoleContext): void {
  addOverviewRoutes(router, context);
  addArrivalRoutes(router, context);
  addBookingRoutes(router, context);
  addEventRoutes(router, context);
  addStuckRoutes(router, context);
  addRestoreRoutes(router, context);
  addTaskRoutes(router, context);
  addSearchRoutes(router, context);
  addPartnerRoutes(router, context);
  addSubscriptionRoutes(router, context);
  addAuditRoutes(router, context);
}
