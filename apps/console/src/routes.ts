import type Router from "@koa/router";
import type { ConsoleContext } from "./context.ts";
import { addOverviewRoutes } from "./overview/routes.tsx";
import type { PageState } from "./server/page-routes.ts";

/** All pages that need a login. */
export function addRoutes(router: Router<PageState>, context: ConsoleContext): void {
  addOverviewRoutes(router, context);
}
