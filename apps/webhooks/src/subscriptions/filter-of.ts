import type { DeliveryFilter } from "@booking-events/feed";
import type { Subscription } from "@booking-events/store";

/** The filter that a subscription's columns describe. */
export function filterOf(subscription: Subscription): DeliveryFilter {
  const { partners, changes, countries, arrivalFromDays: fromDays, arrivalToDays: toDays } = subscription;
  return {
    ...(partners !== null && { partners }),
    ...(changes !== null && { changes }),
    ...(countries !== null && { countries }),
    ...(fromDays !== null && toDays !== null && { arrival: { fromDays, toDays } }),
  };
}
