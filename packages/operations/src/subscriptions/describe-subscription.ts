import type { Subscription } from "@booking-events/store";

/** Where changes are posted. A query may hold a password of the subscriber's. */
export function describeTarget({ url }: Pick<Subscription, "url">): string {
  if (url === null) return "(pulls)";
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

export function describeDelivery({ mode, payload, signature }: Subscription): string {
  return mode === null ? `${payload}, pulled with a token` : `${payload}, ${mode}, signed by ${signature}`;
}

export function describeFilter({ partners, changes, countries, arrivalFromDays, arrivalToDays }: Subscription): string {
  const parts = [
    ...(partners === null ? [] : [`partners ${partners.join(", ")}`]),
    ...(changes === null ? [] : [`changes ${changes.join(", ")}`]),
    ...(countries === null ? [] : [`destinations ${countries.join(", ")}`]),
    ...(arrivalFromDays === null ? [] : [`arrivals from ${arrivalFromDays} to ${arrivalToDays} days after`]),
  ];
  return parts.length === 0 ? "none: all bookings" : parts.join("; ");
}
