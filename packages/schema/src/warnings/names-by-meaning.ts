import type { BookingFieldName } from "../payload/booking-input.ts";
import { otherReferenceNames, referencesOf } from "./names-of-references.ts";

/** Whom other systems call a consumer. */
const consumers = ["consumer", "customer", "guest", "traveller", "traveler", "passenger", "client", ""];
const agents = ["agent", "travelAgent"];

const phone = ["phone", "phoneNumber", "phoneNo", "phoneNum", "telephone", "telephoneNumber", "tel"].concat([
  "mobile",
  "mobileNumber",
  "mobileNo",
  "mobilePhone",
  "mobilePhoneNumber",
  "cellPhone",
  "cellPhoneNumber",
]);
const email = ["email", "emailAddress", "mail", "emailId"];
const firstName = ["givenName", "firstName", "forename"];

/**
 * What other systems call a listed field. Only names that can hardly mean anything else are here, because a wrong
 * suggestion is worse than none. These are missing on purpose:
 *
 * - `departureDate`: a hotel means the day on which the guest leaves, and an airline that of the flight there.
 * - `flightNumber`, `outboundFlight`: the contract has a departure's and an arrival's.
 * - `departureAirport`: it may be a code or a name.
 * - `consumerName`: it is mostly the whole name, and the contract lists the given name alone.
 * - `bookingDate`: the day on which the guest booked.
 * - `orderNumber`, `pnr`: one of them may be for several bookings.
 * - `customerReference`: in trade it is mostly the booking's.
 * - `contactPhone`, `contactEmail`: they may be the agent's, or a relative's.
 */
export const namesByMeaning: Partial<Record<BookingFieldName, string[]>> = {
  ...otherReferenceNames,
  consumerGivenName: withPrefixes(consumers, firstName),
  consumerPhone: withPrefixes(consumers, phone),
  consumerTripDepartureCityName: ofTrip("departureCityName", "departureCity"),
  consumerTripDepartureCountryName: ofTrip("departureCountryName", "departureCountry", "departureCountryCode"),
  consumerTripDepartureAirportCode: ofTrip(
    ...["departureAirportCode", "departureAirportIata", "departureAirportIataCode", "departureIataCode"],
    "originAirportCode",
  ),
  consumerTripDepartureAirportName: ofTrip("departureAirportName", "originAirportName"),
  consumerTripDepartureFlightNumber: ofTrip(...flight("departureFlight")),
  consumerTripArrivalAirportName: ofTrip("arrivalAirportName"),
  consumerTripArrivalFlightNumber: ofTrip(...flight("arrivalFlight")),
  consumerTripAccommodationName: ofTrip(
    ...["accommodationName", "accommodation", "accomodationName", "accomodation"],
    ...["hotelName", "hotel"],
  ),
  consumerTripAccommodationAddress: ofTrip("accommodationAddress", "accomodationAddress", "hotelAddress"),
  consumerTripVenueName: ofTrip("venueName", "venue"),
  consumerTripVenueAddress: ofTrip("venueAddress"),
  consumerTripDestinationName: ofTrip("destinationName", "destination", "destinationCity", "destinationCityName"),
  consumerTripDestinationCountryName: ofTrip(
    ...["destinationCountryName", "destinationCountry", "destinationCountryCode"],
  ),
  consumerTripDestinationAirportCode: ofTrip(
    ...["destinationAirportCode", "destinationAirportIata", "destinationAirportIataCode", "destinationIataCode"],
  ),
  consumerTripExternalProductName: ofTrip("externalProductName", "productName", "productTitle"),
  consumerTripIsInternational: withPrefixes(["consumerTrip", "trip", ""], ["isInternational"]),
  consumerTripIsRegional: withPrefixes(["consumerTrip", "trip"], ["isRegional"]),
  consumerTripIsLocal: withPrefixes(["consumerTrip", "trip"], ["isLocal"]),
  consumerTripArrivalDate: ofTrip(
    ...["arrivalDate", "arrivalDateTime", "startDate", "startDateTime"],
    ...["checkIn", "checkInDate", "checkInDateTime"],
  ),
  consumerTripReturnDate: ofTrip(
    ...["returnDate", "returnDateTime", "endDate", "endDateTime"],
    ...["checkOut", "checkOutDate", "checkOutDateTime"],
  ),
  agentPartnerExternalReference: referencesOf(agents, ["code"]),
  agentTimezone: withPrefixes(agents, ["timezone", "timezoneName", "timezoneId", "tz"]),
  agentPhoneNumber: withPrefixes(agents, phone),
  agentGivenName: withPrefixes(agents, firstName),
  agentFamilyName: withPrefixes(agents, ["familyName", "lastName", "surname"]),
  agentEmail: withPrefixes(agents, email),
  consumerLanguage: withPrefixes(consumers, [
    ...["language", "languageCode", "lang", "locale", "localeCode"],
    ...["preferredLanguage", "preferredLocale"],
  ]),
  consumerEmail: withPrefixes(consumers, email),
  consumerNationality: withPrefixes(consumers, ["nationality", "nationalityCode", "citizenship"]),
  consumerCurrency: withPrefixes(consumers, ["currency", "currencyCode"]),
};

function ofTrip(...names: string[]): string[] {
  return withPrefixes(["consumerTrip", "consumerBooking", "consumer", "trip", "booking", "reservation", ""], names);
}

function flight(name: string): string[] {
  return ["", "Number", "No", "Num", "Nr", "Code"].map((ending) => name + ending);
}

function withPrefixes(prefixes: readonly string[], names: readonly string[]): string[] {
  return prefixes.flatMap((prefix) => names.map((name) => prefix + name));
}
