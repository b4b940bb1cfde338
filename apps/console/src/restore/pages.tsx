import { OperationFailure, type RestoreRequest } from "@booking-events/operations";
import { cleanReference, referenceKinds } from "@booking-events/schema";
import type { PageRequest } from "../server/page-request.ts";
import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import type { Tasks } from "../tasks/tasks.ts";
import { RestorePage } from "./restore-page.tsx";
import type { RestoreReport } from "./restore-report.ts";
import { runRestore } from "./run-restore.ts";

export function addRestorePages(pages: Pages): void {
  const { tasks } = pages.context;
  const to = () => "/restore";
  pages.show("/restore", ({ query }) => <RestorePage query={query} />);
  pages.act("/restore/preview", to, async (request) => {
    const { id } = await runRestore(tasks, request.operations, readRestoreRequest(request), { isPreview: true });
    return { notice: "Nothing has been changed yet.", to: `/tasks/${id}` };
  });
  pages.act("/restore", to, async ({ operations, given }) => {
    const { request, isTest } = confirmPreview(tasks, given("preview") ?? "");
    const { id } = await runRestore(tasks, { ...operations, isTest }, request, { isPreview: false });
    return { notice: "The restore has begun.", to: `/tasks/${id}` };
  });
}

/**
 * The query has the reference if it is that of one booking, since forms change line breaks.
 *
 * @throws Refusal if the form lacks what is needed
 */
function readRestoreRequest({ form, query, view: { now }, given, time }: PageRequest): RestoreRequest {
  const [partner, at] = [given("partner"), time("at")];
  if (partner === undefined) throw new Refusal(400, "No partner", "Name the partner whose bookings are put back.");
  if (at === undefined) throw new Refusal(400, "No time", "Name the time to which bookings are put back.");
  if (at > now)
    throw new Refusal(400, "No such time", "The time is in the future. Bookings are put back to what they were.");
  return {
    partner,
    at,
    references: [...query.getAll("reference"), ...(form.get("references") ?? "").split(/\r?\n/)]
      .map(cleanReference)
      .filter((reference) => reference !== ""),
    referenceKind: referenceKinds.find((kind) => kind === given("kind")),
    secret: given("secret"),
    deleteNew: given("delete-new") === "yes",
  };
}

/**
 * A restore does what its preview has shown: what changed since stays as it is.
 *
 * @throws OperationFailure if the preview is unknown, or has not ended
 */
function confirmPreview(tasks: Tasks, id: string): Pick<RestoreReport, "request" | "isTest"> {
  const report = tasks.find(id)?.report;
  if (report?.kind !== "restore" || !report.isPreview || report.restored === null)
    throw new OperationFailure("The preview is not known any more. Look at it again, and confirm that.");
  const { request, isTest, restored } = report;
  return { request: { ...request, unlessChangedSince: restored.readAt }, isTest };
}
