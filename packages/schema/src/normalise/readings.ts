import type { BookingFieldName } from "../payload/booking-input.ts";
import type { NormalisedBooking } from "./normalise-booking.ts";

const readings: Partial<Record<BookingFieldName, readonly (keyof NormalisedBooking)[]>> = {
  consumerPhone: ["consumerPhone", "consumerPhoneIsAssumed"],
  consumerTripDepartureCountryName: ["consumerTripDepartureCountryName", "consumerTripDepartureCountryCode"],
  consumerTripDepartureAirportCode: ["consumerTripDepartureAirportCode"],
  consumerTripDestinationCountryName: ["consumerTripDestinationCountryName", "consumerTripDestinationCountryCode"],
  consumerTripDestinationAirportCode: ["consumerTripDestinationAirportCode"],
  consumerTripIsInternational: ["consumerTripIsInternational"],
  consumerTripIsRegional: ["consumerTripIsRegional"],
  consumerTripIsLocal: ["consumerTripIsLocal"],
  consumerTripArrivalDate: ["consumerTripArrivalDate", "consumerTripArrivalAt"],
  consumerTripReturnDate: ["consumerTripReturnDate", "consumerTripReturnAt"],
  agentTimezone: ["agentTimezone"],
  agentPhoneNumber: ["agentPhoneNumber", "agentPhoneNumberIsAssumed"],
  agentEmail: ["agentEmail"],
  consumerLanguage: ["consumerLanguage"],
  consumerEmail: ["consumerEmail"],
  consumerNationality: ["consumerNationality"],
  consumerCurrency: ["consumerCurrency"],
};

/** What is read of each field of the contract, by its name. The fields that are only kept as sent have no entry. */
export const readingsOf: ReadonlyMap<string, readonly (keyof NormalisedBooking)[]> = new Map(Object.entries(readings));
