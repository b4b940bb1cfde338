import type { BookingFieldName } from "@booking-events/schema";

/**
 * What a booking says of the trip and not of a person. Where a guest stays (accommodation, venue) is left out with the
 * names, numbers and addresses: a field is shown only if it stands here.
 */
const tripFields = [
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

/** Those of the trip's fields that the booking has. */
export function pickTrip(content: Record<string, unknown>): Trip {
  return Object.fromEntries(
    tripFields.map((name) => [name, content[name]]).filter(([, value]) => typeof value === "string"),
  );
}

/** Lines for an operator, by their labels. Null: nothing is known. */
export function describeTrip(trip: Trip): [label: string, value: string | null][] {
  return [
    ["Product", trip.consumerTripExternalProductName ?? null],
    ["Destination", describeDestination(trip)],
    ["From", describeDeparture(trip)],
    ["Arrival", describeArrival(trip)],
    ["Return", trip.consumerTripReturnDate ?? null],
  ];
}

/** Lisbon, Portugal (LIS) */
function describeDestination(trip: Trip): string | null {
  return joinPlace(
    [trip.consumerTripDestinationName, trip.consumerTripDestinationCountryName],
    trip.consumerTripDestinationAirportCode,
  );
}

/** London, United Kingdom (LHR), flight BA500 */
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

/** 2027-06-14, Lisbon Airport, flight BA500 */
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
