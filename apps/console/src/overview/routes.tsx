import { findConcerns, readStatus } from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { type PageState, showing } from "../server/page-routes.ts";
import { OverviewPage } from "./overview-page.tsx";

export function addOverviewRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/",
    showing(context, async ({ view, operations }) => {
      const status = await readStatus(operations);
      return <OverviewPage view={view} concerns={findConcerns(status)} />;
    }),
  );
}
