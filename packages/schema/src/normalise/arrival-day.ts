import { readDate } from "./date.ts";

/** Returns the day on which the guest arrives, as the partner wrote it: YYYY-MM-DD. Null: the payload does not say. */
export function arrivalDayOf({ consumerTripArrivalDate: sent }: { readonly [field: string]: unknown }): string | null {
  const date = typeof sent === "string" ? readDate(sent) : undefined;
  return date === undefined || date === "none" ? null : date.day;
}
