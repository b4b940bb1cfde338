import { findText } from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { type PageState, showing } from "../server/page-routes.ts";
import { SearchPage } from "./search-page.tsx";

const maxLength = 1_000;

export function addSearchRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/search",
    showing(context, async ({ view, operations, query }) => {
      const text = (query.get("q") ?? "").slice(0, maxLength);
      const result = text.trim() === "" ? null : await findText(operations, text);
      return <SearchPage view={view} text={text} result={result} />;
    }),
  );
}
