import type { BookingFieldName } from "@booking-events/schema";

/** Fields about the trip that are not about a person. Only these are shown. Where a guest stays is personal data. */
export const tripFields = [
  "consumerTripExternalProductName",
  "consumerTripDestinationName",
  "consumerTripDestinationCountryName",
  "consumerTripDestinationAirportCode",
  "consumerTripDepartureCityName",
  "consumerTripDepartureCountryName",
  "consumerTripDepartureAirportCode",
  "consumerTripDepartureAirportName",
  "consumerTripDepartureFlightNumber",
  "consumerTripArrivalAirportName",
  "consumerTripArrivalFlightNumber",
  "consumerTripArrivalDate",
  "consumerTripReturnDate",
  "consumerTripIsInternational",
  "consumerTripIsRegional",
  "consumerTripIsLocal",
] as const satisfies BookingFieldName[];

export type Trip = Partial<Record<(typeof tripFields)[number], string>>;

export function pickTrip(content: Record<string, unknown>): Trip {
  return Object.fromEntries(
    tripFields.map((name) => [name, content[name]]).filter(([, value]) => typeof value === "string"),
  );
}

/** Describes the trip in labelled lines. Null: nothing is known. */
export function describeTrip(trip: Trip): [label: string, value: string | null][] {
  return [
    ["Product", trip.consumerTripExternalProductName ?? null],
    ["Destination", describeDestination(trip)],
    ["From", describeDeparture(trip)],
    ["Arrival", describeArrival(trip)],
    ["Return", trip.consumerTripReturnDate ?? null],
  ];
}

/** For example: Lisbon, Portugal (LIS) */
function describeDestination(trip: Trip): string | null {
  return joinPlace(
    [trip.consumerTripDestinationName, trip.consumerTripDestinationCountryName],
    trip.consumerTripDestinationAirportCode,
  );
}

/** For example: London, United Kingdom (LHR), flight BA500 */
function describeDeparture(trip: Trip): string | null {
  const place = joinPlace(
    [
      trip.consumerTripDepartureCityName ?? trip.consumerTripDepartureAirportName,
      trip.consumerTripDepartureCountryName,
    ],
    trip.consumerTripDepartureAirportCode,
  );
  return joinPresent([place, flight(trip.consumerTripDepartureFlightNumber)]);
}

/** For example: 2027-06-14, Lisbon Airport, flight BA500 */
function describeArrival(trip: Trip): string | null {
  return joinPresent([
    trip.consumerTripArrivalDate,
    trip.consumerTripArrivalAirportName,
    flight(trip.consumerTripArrivalFlightNumber),
  ]);
}

function flight(number: string | undefined): string | null {
  return number === undefined ? null : `flight ${number}`;
}

function joinPlace(names: (string | undefined)[], code: string | undefined): string | null {
  const name = joinPresent(names);
  if (code === undefined) return name;
  return name === null ? code : `${name} (${code})`;
}

function joinPresent(parts: (string | null | undefined)[]): string | null {
  const present = parts.filter((part) => typeof part === "string");
  return present.length === 0 ? null : present.join(", ");
}
