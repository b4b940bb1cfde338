import type { RestoreRequest } from "@booking-events/operations";
import { cleanReference, referenceKinds } from "@booking-events/schema";
import type { PageRequest } from "../server/page-request.ts";
import { Refusal } from "../server/refusal.ts";

/**
 * The query has the reference if it is that of one booking, since forms change line breaks.
 *
 * @throws Refusal if the form lacks what is needed
 */
export function readRestoreRequest({ form, query, view: { now }, given, time }: PageRequest): RestoreRequest {
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
