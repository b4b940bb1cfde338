import { readDate } from "@booking-events/schema";
import { readCountry } from "@booking-events/schema/normalise";
import type { FeedChange } from "@booking-events/store";
import type { BookingChange } from "../read-changes.ts";
import type { DeliveryFilter } from "./consumer-options.ts";

const dayMs = 24 * 3_600_000;

/** Of those a consumer is told if it knows the booking, whatever its filter says. */
const alwaysTold: readonly FeedChange[] = ["deleted", "erased"];

/** Whether the bookings that were handed have to be remembered. A booking never leaves its partner. */
export function needsMemory({ changes, countries, arrival }: DeliveryFilter): boolean {
  return changes !== undefined || countries !== undefined || arrival !== undefined;
}

/** Changes of other kinds decide nothing, so they need not be looked at. Null: any kind may decide. */
export function kindsToLookAt({ changes, countries, arrival }: DeliveryFilter): FeedChange[] | null {
  if (changes === undefined || countries !== undefined || arrival !== undefined) return null;
  return [...changes, ...alwaysTold];
}

/** Changes of which a later one takes the place of all before it. Null: any kind. */
export function kindsThatStandForOthers({ changes }: DeliveryFilter): FeedChange[] | null {
  return changes === undefined ? null : [...changes, ...alwaysTold];
}

/** What a consumer knows of a booking. `never`: it was never handed. */
export type Handed = "never" | "inside" | "outside";

/**
 * Decides whether to hand a change over, if its partner is wanted.
 *
 * @param handed what the booking's content was when it was last handed over: inside the filter or outside it
 * @returns handed: what the consumer knows of the booking once it has got the change
 */
export function judge(
  filter: DeliveryFilter,
  change: Pick<BookingChange, "change" | "changedAt" | "payload">,
  handed: Handed,
): { isWanted: boolean; handed: Handed } {
  const holdsNothing = change.payload === null;
  if (holdsNothing || !isInside(filter, change)) {
    const isWanted = holdsNothing ? handed !== "never" || asksForAll(filter, change) : handed === "inside";
    return { isWanted, handed: isWanted ? "outside" : handed };
  }
  const isWanted = filter.changes?.includes(change.change) ?? true;
  return { isWanted, handed: isWanted ? "inside" : handed };
}

/** Whether the filter names the end of any booking, whatever it held. */
function asksForAll(
  { changes, countries, arrival }: DeliveryFilter,
  { change }: Pick<BookingChange, "change">,
): boolean {
  return countries === undefined && arrival === undefined && (changes?.includes(change) ?? false);
}

/** Whether what a booking holds passes the filter, by its destination and its arrival, as seen on the day of the change. */
export function isInside(
  { countries, arrival }: DeliveryFilter,
  { payload, changedAt }: Pick<BookingChange, "payload" | "changedAt">,
): boolean {
  const { consumerTripDestinationCountryName: country, consumerTripArrivalDate: date } = payload ?? {};
  if (countries !== undefined && !countries.includes(read(country, readCountry) ?? "")) return false;
  if (arrival === undefined) return true;
  const day = read(date, readDate);
  if (day === undefined || day === "none") return false;
  const days = (Date.parse(day.day) - Math.floor(changedAt.getTime() / dayMs) * dayMs) / dayMs;
  return days >= arrival.fromDays && days <= arrival.toDays;
}

function read<Value>(sent: unknown, reader: (text: string) => Value): Value | undefined {
  return typeof sent === "string" ? reader(sent) : undefined;
}
