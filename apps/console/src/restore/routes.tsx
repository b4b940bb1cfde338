import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { acting, type PageState, showing } from "../server/page-routes.ts";
import { confirmPreview } from "./confirm-preview.ts";
import { readRestoreRequest } from "./read-restore-request.ts";
import { RestorePage } from "./restore-page.tsx";
import { runRestore } from "./run-restore.ts";

export function addRestoreRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/restore",
    showing(context, ({ view, query }) => <RestorePage view={view} query={query} />),
  );
  const operator = { role: "operator", to: () => "/restore" } as const;
  router.post(
    "/restore/preview",
    acting(context, operator, async (page) => {
      const request = readRestoreRequest(page);
      const { id } = await runRestore(context.tasks, page.operations, request, { isPreview: true });
      return { notice: "Nothing has been changed yet.", to: `/tasks/${id}` };
    }),
  );
  router.post(
    "/restore",
    acting(context, operator, async ({ operations, form }) => {
      const request = confirmPreview(context.tasks, form.get("preview") ?? "");
      const { id } = await runRestore(context.tasks, operations, request, { isPreview: false });
      return { notice: "The restore has begun.", to: `/tasks/${id}` };
    }),
  );
}
