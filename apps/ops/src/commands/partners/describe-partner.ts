import type { Partner } from "@booking-events/operations";
import { type EventKind, eventKinds } from "@booking-events/schema";

export function describeKinds(kinds: EventKind[]): string {
  return eventKinds.every((kind) => kinds.includes(kind)) ? "all" : kinds.join(",");
}

export function describeRate({ rateLimit: { perSecond, burst } }: Pick<Partner, "rateLimit">): string {
  return `${perSecond}/s, burst ${burst}`;
}

/** Continues a sentence. */
export function describeCountry({ country }: Partner): string {
  return country === undefined ? "" : `, with phone numbers of ${country} where they have no country code`;
}
