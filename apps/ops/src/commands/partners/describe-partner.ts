import type { Partner } from "@booking-events/partners";
import { type EventKind, eventKinds } from "@booking-events/schema";

export function describeKinds(kinds: EventKind[]): string {
  return eventKinds.every((kind) => kinds.includes(kind)) ? "all" : kinds.join(",");
}

export function describeRate({ rateLimit: { perSecond, burst } }: Partner): string {
  return `${perSecond}/s, burst ${burst}`;
}
