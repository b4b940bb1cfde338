import type { BookingFieldName } from "../src/payload/booking-input.ts";

/** What the read model makes of a field. It has the others as they were sent. */
export const readings: Partial<Record<BookingFieldName, string>> = {
  consumerPhone: "number, such as +442071838750",
  consumerTripDepartureCountryName: "name, and code such as GB",
  consumerTripDepartureAirportCode: "three capitals",
  consumerTripDestinationCountryName: "name, and code such as PT",
  consumerTripDestinationAirportCode: "three capitals",
  consumerTripIsInternational: "true or false",
  consumerTripIsRegional: "true or false",
  consumerTripIsLocal: "true or false",
  consumerTripArrivalDate: "day, and moment if sent with a zone",
  consumerTripReturnDate: "day, and moment if sent with a zone",
  agentTimezone: "IANA name, such as Europe/London",
  agentPhoneNumber: "number, such as +442071838750",
  agentEmail: "address",
  consumerLanguage: "tag, such as en or pt-BR",
  consumerEmail: "address",
  consumerNationality: "code, such as GB",
  consumerCurrency: "code, such as EUR",
};
