import { type EventFilter, isUuid, type Outcome, parsePast } from "@booking-events/operations";
import { eventKinds } from "@booking-events/schema";
import { Refusal } from "../server/refusal.ts";

export const outcomes = [
  ...["created", "updated", "deleted", "recreated", "unchanged", "duplicate", "superseded", "expired", "erased"],
] as const satisfies Outcome[];

const pageSize = 50;

/** @throws Refusal if the query has what is no time, or no id */
export function readEventFilter(query: URLSearchParams, now: Date): Omit<EventFilter, "reference"> {
  const given = (name: string) => query.get(name)?.trim() || undefined;
  const before = given("before");
  if (before !== undefined && !isUuid(before))
    throw new Refusal(400, "No such page", "The page begins with an event that has no valid id. Open Events again.");
  return {
    partner: given("partner"),
    secret: given("secret"),
    kind: eventKinds.find((kind) => kind === given("kind")),
    outcome: outcomes.find((outcome) => outcome === given("outcome")),
    since: readTime(given("since"), now),
    until: readTime(given("until"), now),
    before: before?.toLowerCase(),
    limit: pageSize,
  };
}

function readTime(text: string | undefined, now: Date): Date | undefined {
  if (text === undefined) return undefined;
  const time = parsePast(text, now);
  if (time !== undefined) return time;
  throw new Refusal(400, "No such time", "Give a time such as 2026-11-20T14:00:00Z, 02:00 (in UTC) or 2h (ago).");
}
