import type { BookingDelivery } from "@booking-events/operations";
import type { Tone } from "../page/badge.tsx";

/** @param newest the id of the booking's newest change in the feed */
export function describeDelivery(delivery: BookingDelivery, newest: number): { state: string; tone: Tone } {
  const { isOtherPartner, diedAt, changeId, doneId, pausedAt } = delivery;
  if (diedAt !== null) return { state: "dead", tone: "bad" };
  if (changeId !== null) return { state: "failing", tone: "warn" };
  if (isOtherPartner) return { state: "not for this partner", tone: "quiet" };
  if (doneId >= newest) return { state: "dealt with", tone: "good" };
  return pausedAt === null ? { state: "waiting", tone: "info" } : { state: "paused", tone: "warn" };
}
