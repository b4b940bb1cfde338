import type Router from "@koa/router";
import { addBookingRoutes } from "./bookings/routes.tsx";
import type { ConsoleContext } from "./context.ts";
import { addEventRoutes } from "./events/routes.tsx";
import { addOverviewRoutes } from "./overview/routes.tsx";
import { addRestoreRoutes } from "./restore/routes.tsx";
import type { PageState } from "./server/page-routes.ts";
import { addStuckRoutes } from "./stuck/routes.tsx";
import { addTaskRoutes } from "./tasks/routes.tsx";

/** All pages that need a login. */
export function addRoutes(router: Router<PageState>, context: ConsoleContext): void {
  addOverviewRoutes(router, context);
  addBookingRoutes(router, context);
  addEventRoutes(router, context);
  addStuckRoutes(router, context);
  addRestoreRoutes(router, context);
  addTaskRoutes(router, context);
}
