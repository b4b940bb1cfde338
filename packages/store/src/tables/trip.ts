import { datePattern } from "@booking-events/schema";

/** What a payload says of the trip, for columns of `bookings`. */
export interface Trip {
  /** A date, or a date-time with its zone. */
  arrival: string | null;
  return: string | null;
  country: string | null;
  airport: string | null;
}

/** The columns of SQL's `booking_trip`. */
export const tripColumns = [
  "arrival_date",
  "arrival_at",
  "return_date",
  "return_at",
  "destination_country",
  "destination_airport",
];

/** As in SQL's `booking_country`. */
const maxCountryLength = 100;

/**
 * Does what SQL's `booking_trip` does, at a fraction of the cost: PostgreSQL takes 5 µs to unpack a payload that it has
 * stored, and 5 ms to plan a statement with `booking_trip`.
 *
 * @returns null: a date that partners may not send, which SQL may be able to read
 */
export function readTrip(payload: Readonly<Record<string, unknown>>): Trip | null {
  const [arrival, departure] = [payload["consumerTripArrivalDate"] ?? null, payload["consumerTripReturnDate"] ?? null];
  if (!isDateOrNull(arrival) || !isDateOrNull(departure)) return null;
  return {
    arrival,
    return: departure,
    country: readCountry(payload["consumerTripDestinationCountryName"]),
    airport: readAirport(payload["consumerTripDestinationAirportCode"]),
  };
}

function isDateOrNull(value: unknown): value is string | null {
  return value === null || (typeof value === "string" && datePattern.test(value));
}

function readCountry(value: unknown): string | null {
  if (typeof value !== "string") return null;
  // PostgreSQL counts code points.
  if (value.length > maxCountryLength && [...value].length > maxCountryLength) return null;
  return value.replaceAll(/^ +| +$/g, "") || null;
}

function readAirport(value: unknown): string | null {
  return typeof value === "string" ? (/^ *([A-Za-z]{3}) *$/.exec(value)?.[1]?.toUpperCase() ?? null) : null;
}
