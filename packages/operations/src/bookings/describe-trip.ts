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
  const { consumerTripDepartureAirportName: airportName, consumerTripDepartureCityName: city = airportName } = trip;
  return [
    ["Product", trip.consumerTripExternalProductName ?? null],
    // Lisbon, Portugal (LIS)
    [
      "Destination",
      joinPlace(
        [trip.consumerTripDestinationName, trip.consumerTripDestinationCountryName],
        trip.consumerTripDestinationAirportCode,
      ),
    ],
    // London, United Kingdom (LHR), flight BA500
    [
      "From",
      join(
        joinPlace([city, trip.consumerTripDepartureCountryName], trip.consumerTripDepartureAirportCode),
        flight(trip.consumerTripDepartureFlightNumber),
      ),
    ],
    // 2027-06-14, Lisbon Airport, flight BA500
    [
      "Arrival",
      join(
        trip.consumerTripArrivalDate,
        trip.consumerTripArrivalAirportName,
        flight(trip.consumerTripArrivalFlightNumber),
      ),
    ],
    ["Return", trip.consumerTripReturnDate ?? null],
  ];
}

function flight(number: string | undefined): string | undefined {
  return number === undefined ? undefined : `flight ${number}`;
}

function joinPlace(names: (string | undefined)[], code: string | undefined): string | null {
  const name = join(...names);
  return code === undefined ? name : name === null ? code : `${name} (${code})`;
}

function join(...parts: (string | null | undefined)[]): string | null {
  return parts.filter((part) => typeof part === "string").join(", ") || null;
}
