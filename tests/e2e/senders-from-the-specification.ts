import type { StackPayload } from "./payloads-by-stack.ts";

/**
 * The first bookings of partners who have nothing but the specification: paths, two request types, names of fields, most
 * of them strings. It does not list the trip's reference, so they identify a booking by the consumer.
 */
export interface SpecificationSender {
  source: string;
  contentType: string;
  headers?: Record<string, string>;
  events: { kind: "create" | "update" | "delete"; body: string; warnings: string[] }[];
  /** Columns of `booking_details` after the last event. */
  reads: StackPayload["reads"];
  state: "active" | "deleted";
}

const jsonType = "application/json";
const formType = "application/x-www-form-urlencoded";

export const specificationSenders: SpecificationSender[] = [
  {
    source: "Java 21, Spring Boot 3.3: a record, LocalDate, Include.NON_NULL",
    contentType: jsonType,
    headers: { Accept: "application/json, application/*+json", "User-Agent": "Java/21.0.3" },
    events: [
      {
        kind: "create",
        body: `{"consumerGivenName":"Jos\u00e9","consumerPartnerExternalReference":"SPEC-0","consumerPhone":"+351 912 345 678","consumerTripDepartureCityName":"Porto","consumerTripDepartureCountryName":"Portugal","consumerTripDepartureAirportCode":"OPO","consumerTripDepartureFlightNumber":"TP1234","consumerTripDestinationName":"Madeira","consumerTripDestinationCountryName":"Portugal","consumerTripDestinationAirportCode":"FNC","consumerTripIsInternational":"false","consumerTripIsRegional":"true","consumerTripIsLocal":"false","consumerTripArrivalDate":"2027-06-14","consumerTripReturnDate":"2027-06-21","agentEmail":"reservas@agencia.example","agentTimezone":"Europe/Lisbon","consumerLanguage":"pt-PT"}`,
        warnings: ["no-trip-reference"],
      },
      {
        kind: "update",
        body: `{"consumerGivenName":"Jos\u00e9","consumerPartnerExternalReference":"SPEC-0","consumerPhone":"+351 912 345 678","consumerTripDestinationName":"Madeira","consumerTripIsInternational":"false","consumerTripArrivalDate":"2027-06-15","consumerTripReturnDate":"2027-06-21","agentEmail":"reservas@agencia.example","consumerLanguage":"pt-PT"}`,
        warnings: ["no-trip-reference"],
      },
    ],
    reads: {
      consumer_given_name: "Jos\u00e9",
      consumer_phone: "+351912345678",
      consumer_trip_arrival_date: "2027-06-15",
      consumer_trip_return_date: "2027-06-21",
      consumer_trip_is_international: false,
      consumer_trip_is_regional: null,
      consumer_trip_departure_city_name: null,
      consumer_language: "pt-PT",
      agent_email_normalised: "reservas@agencia.example",
    },
    state: "active",
  },
  {
    source: "PHP 8.3, Guzzle 7 with form_params: empty columns of MySQL, DATETIME, booleans as 1 and empty",
    contentType: formType,
    headers: { "User-Agent": "GuzzleHttp/7" },
    events: [
      {
        kind: "create",
        body: "consumerGivenName=Zo%C3%AB&consumerPartnerExternalReference=SPEC-1&consumerPhone=0044+20+7183+8750&consumerTripDepartureCityName=&consumerTripAccommodationName=H%C3%B4tel+de+l%27%C3%89toile&consumerTripAccommodationAddress=1+rue+Exemple%0D%0A75001+Paris&consumerTripDestinationCountryName=France&consumerTripDestinationAirportCode=cdg&consumerTripIsInternational=1&consumerTripIsRegional=&consumerTripIsLocal=&consumerTripArrivalDate=2027-06-14+15%3A30%3A00&consumerTripReturnDate=0000-00-00+00%3A00%3A00&agentPhoneNumber=&agentEmail=&consumerLanguage=fr_FR",
        warnings: ["no-time-zone", "no-trip-reference", "unreadable-date"],
      },
    ],
    reads: {
      consumer_given_name: "Zo\u00eb",
      consumer_phone: "+442071838750",
      consumer_trip_accommodation_name: "H\u00f4tel de l'\u00c9toile",
      consumer_trip_accommodation_address: "1 rue Exemple\r\n75001 Paris",
      consumer_trip_destination_country_code: "FR",
      consumer_trip_destination_airport_code_normalised: "CDG",
      consumer_trip_is_international: true,
      consumer_trip_is_regional: null,
      consumer_trip_arrival_date: "2027-06-14",
      consumer_trip_return_date: null,
      agent_phone_number: null,
      agent_email_normalised: null,
      consumer_language: "fr-FR",
    },
    state: "active",
  },
  {
    source: ".NET 8, HttpClient.PostAsJsonAsync: DateTimeOffset, bool.ToString, string.Empty",
    contentType: "application/json; charset=utf-8",
    headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" },
    events: [
      {
        kind: "create",
        body: `{"consumerGivenName":"Bj\\u00F6rn","consumerPartnerExternalReference":"SPEC-2","consumerPhone":"\\u002B46 70 123 45 67","consumerTripVenueName":"","consumerTripIsInternational":"True","consumerTripIsRegional":"False","consumerTripArrivalDate":"2027-06-14T23:30:00+02:00","consumerTripReturnDate":"2027-06-21T08:05:00+02:00","agentTimezone":"W. Europe Standard Time","agentGivenName":"","agentEmail":"desk@resor.example","consumerLanguage":"sv","bookingId":4711,"price":1299.90,"passengers":[{"name":"Bj\\u00F6rn","age":41}]}`,
        warnings: ["no-trip-reference", "similar-name"],
      },
      {
        kind: "delete",
        body: `{"consumerGivenName":"Bj\\u00F6rn","consumerPartnerExternalReference":"SPEC-2","consumerPhone":null,"consumerTripArrivalDate":"0001-01-01T00:00:00","bookingId":4711}`,
        warnings: ["similar-name"],
      },
      {
        kind: "create",
        body: `{"consumerGivenName":"Bj\\u00F6rn","consumerPartnerExternalReference":"SPEC-2","consumerPhone":"\\u002B46 70 123 45 67","consumerTripIsInternational":"True","consumerTripArrivalDate":"2027-07-14T23:30:00+02:00","agentTimezone":"W. Europe Standard Time","consumerLanguage":"sv","bookingId":4712}`,
        warnings: ["no-trip-reference", "similar-name"],
      },
    ],
    reads: {
      consumer_given_name: "Bj\u00f6rn",
      consumer_phone: "+46701234567",
      consumer_trip_is_international: true,
      consumer_trip_arrival_date: "2027-07-14",
      consumer_trip_arrival_at: "2027-07-14 21:30:00+00",
      consumer_trip_return_date: null,
      agent_timezone_normalised: "Europe/Berlin",
      consumer_language: "sv",
    },
    state: "active",
  },
  {
    source: "Python 3.12, requests 2.32 with data=: str(bool), date.isoformat, phones as the guest wrote them",
    contentType: formType,
    headers: { "User-Agent": "python-requests/2.32.3" },
    events: [
      {
        kind: "create",
        body: "consumerGivenName=M%C3%A1ire&consumerPartnerExternalReference=SPEC-3&consumerPhone=%2B353+%2885%29+012+3456&consumerTripArrivalAirportName=Cork&consumerTripArrivalFlightNumber=EI+123&consumerTripExternalProductName=City+break+%26+tour&consumerTripIsInternational=True&consumerTripIsLocal=False&consumerTripArrivalDate=2027-06-14&agentEmail=M%C3%A1ire+O%27Brien+%3Cmaire%40agency.example%3E&agentPhoneNumber=021+427+3955&consumerLanguage=English&channel=web&channel=affiliate",
        warnings: ["no-trip-reference", "unreadable-phone"],
      },
      { kind: "delete", body: "consumerPartnerExternalReference=SPEC-3", warnings: [] },
    ],
    reads: {},
    state: "deleted",
  },
  {
    source:
      "Node.js 22, fetch without a header: Date as JSON, MySQL's TINYINT as text, null where the list says nothing",
    contentType: "text/plain;charset=UTF-8",
    events: [
      {
        kind: "update",
        body: `{"consumerGivenName":"Ada","consumerPartnerExternalReference":"SPEC-4","consumerPhone":"+1 (415) 555-2671","consumerTripIsInternational":"1","consumerTripIsRegional":"0","consumerTripArrivalDate":"2027-06-14T13:30:00.000Z","consumerTripReturnDate":"","agentTimezone":"America/Los_Angeles","consumerLanguage":null,"consumerEmail":"ada@example.com","createdAt":"2026-11-25T09:00:00.000Z"}`,
        warnings: ["no-trip-reference", "wrong-content-type"],
      },
    ],
    reads: {
      consumer_phone: "+14155552671",
      consumer_email_normalised: "ada@example.com",
      consumer_trip_is_international: true,
      consumer_trip_is_regional: false,
      consumer_trip_arrival_date: "2027-06-14",
      consumer_trip_arrival_at: "2027-06-14 13:30:00+00",
      consumer_trip_return_date: null,
      consumer_language: null,
    },
    state: "active",
  },
];
