import type { Partner } from "@booking-events/partners";
import { type EventKind, eventKinds } from "@booking-events/schema";

export function describeKinds(kinds: EventKind[]): string {
  return eventKinds.every((kind) => kinds.includes(kind)) ? "all" : kinds.join(",");
}

const quotaUnits = ["B", "kB", "MB", "GB", "TB"];

/** In the units in which quotas are set: 1 kB is 1,000 bytes. */
export function describeQuota(bytes: number): string {
  const power = Math.min(quotaUnits.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${Number((bytes / 1_000 ** power).toPrecision(3))} ${quotaUnits[power]}`;
}

export function describeRate({ rateLimit: { perSecond, burst } }: Partner): string {
  return `${perSecond}/s, burst ${burst}`;
}

/** Continues a sentence. */
export function describeCountry({ country }: Partner): string {
  return country === undefined ? "" : `, with phone numbers of ${country} where they have no country code`;
}
