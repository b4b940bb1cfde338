import { parsePast, type RestoreRequest } from "@booking-events/operations";
import { cleanReference, referenceKinds } from "@booking-events/schema";
import type { PageRequest } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";

/**
 * @param query has the reference if it is that of one booking, since forms change line breaks
 * @throws Refusal if the form lacks what is needed
 */
export function readRestoreRequest({ form, query, view: { now } }: PageRequest): RestoreRequest {
  const given = (name: string) => form.get(name)?.trim() || undefined;
  const partner = given("partner");
  if (partner === undefined) throw new Refusal(400, "No partner", "Name the partner whose bookings are put back.");
  const seen = given("unless-changed-since");
  return {
    partner,
    at: readTime(given("at"), now),
    references: [...query.getAll("reference"), ...(form.get("references") ?? "").split(/\r?\n/)]
      .map(cleanReference)
      .filter((reference) => reference !== ""),
    referenceKind: referenceKinds.find((kind) => kind === given("kind")),
    secret: given("secret"),
    deleteNew: given("delete-new") === "yes",
    unlessChangedSince: seen === undefined ? undefined : readTime(seen, now),
  };
}

function readTime(text: string | undefined, now: Date): Date {
  const time = text === undefined ? undefined : parsePast(text, now);
  if (time === undefined)
    throw new Refusal(
      400,
      "No such time",
      "Give a time such as 2026-11-20T14:00:00Z, 2026-11-20 14:00:00 or 02:00 (in UTC), or 2h (ago).",
    );
  if (time <= now) return time;
  throw new Refusal(400, "No such time", "The time is in the future. Bookings are put back to what they were.");
}
