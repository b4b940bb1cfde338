import { listActions, listErasures } from "@booking-events/operations";
import type { Pages } from "../server/pages.ts";
import { AuditPage } from "./audit-page.tsx";

const actionsPerPage = 100;
const maxErasures = 100;

export function addAuditPages(pages: Pages): void {
  pages.show("/audit", async ({ operations, query, given, time }) => {
    const filter = { by: given("by"), since: time("since"), until: time("until") };
    const [actions, erasures] = await Promise.all([
      listActions(operations, { ...filter, limit: actionsPerPage + 1 }),
      listErasures(operations, maxErasures),
    ]);
    const last = actions.length > actionsPerPage ? actions[actionsPerPage - 1] : undefined;
    // Those of the same millisecond come again, rather than never.
    const next = last === undefined ? null : new Date(last.at.getTime() + 1);
    return <AuditPage query={query} actions={actions.slice(0, actionsPerPage)} next={next} erasures={erasures} />;
  });
}
