import { listActions, listErasures, parsePast } from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { type PageState, showing } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";
import { AuditPage } from "./audit-page.tsx";

const actionsPerPage = 100;
const maxErasures = 100;

export function addAuditRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    "/audit",
    showing(context, async ({ view, operations, query }) => {
      const time = (name: string) => toTime(query.get(name), operations.now());
      const by = query.get("by") || undefined;
      const [actions, erasures] = await Promise.all([
        listActions(operations, { by, since: time("since"), until: time("until"), limit: actionsPerPage + 1 }),
        listErasures(operations, maxErasures),
      ]);
      const last = actions.length > actionsPerPage ? actions[actionsPerPage - 1] : undefined;
      return (
        <AuditPage
          view={view}
          query={query}
          actions={actions.slice(0, actionsPerPage)}
          // Those of the same millisecond come again, rather than never.
          next={last === undefined ? null : new Date(last.at.getTime() + 1)}
          erasures={erasures}
        />
      );
    }),
  );
}

function toTime(text: string | null, now: Date): Date | undefined {
  if (text === null || text.trim() === "") return undefined;
  const time = parsePast(text.trim(), now);
  if (time !== undefined) return time;
  throw new Refusal(
    422,
    "Not a time",
    "Give a time such as 2026-11-20T12:00:00Z or 02:00 (in UTC), or how long ago, such as 2h.",
  );
}
