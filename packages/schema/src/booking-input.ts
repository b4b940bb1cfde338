import * as v from "valibot";
import {
  date,
  email,
  emailOrNull,
  type FieldType,
  flag,
  languageOrNull,
  phone,
  reference,
  text,
  textOrNull,
} from "./field-types.ts";
import { requireReference } from "./reference-rule.ts";
import { requireStorableUnknownFields } from "./unknown-fields.ts";

/**
 * The listed fields, in the contract's order. No field is required by itself, and none may be null unless its type says
 * so. The comments are the fields' descriptions in the JSON Schema as well: run `npm run json-schema` after a change.
 */
export const bookingEntries = {
  /** The consumer's first name, without the family name. */
  consumerGivenName: text(),
  /** Your reference of the consumer. Without a trip reference it is the booking's; the same text as a trip's is another. */
  consumerPartnerExternalReference: reference(),
  /** The consumer's phone number, best in E.164 format: +, country code, number. Kept as sent in any other format. */
  consumerPhone: phone(),
  /** The city that the trip starts from. */
  consumerTripDepartureCityName: text(),
  /** The country that the trip starts from. */
  consumerTripDepartureCountryName: text(),
  /** The IATA code of the airport that the trip starts from. */
  consumerTripDepartureAirportCode: text(),
  /** The airport that the trip starts from. */
  consumerTripDepartureAirportName: text(),
  /** The number of the flight that the consumer departs with. */
  consumerTripDepartureFlightNumber: text(),
  /** The airport that the consumer arrives at. */
  consumerTripArrivalAirportName: text(),
  /** The number of the flight that the consumer arrives with. */
  consumerTripArrivalFlightNumber: text(),
  /** The hotel or other accommodation. */
  consumerTripAccommodationName: text(),
  /** The accommodation's address. */
  consumerTripAccommodationAddress: text(),
  /** The venue that the trip is for. */
  consumerTripVenueName: text(),
  /** The venue's address. */
  consumerTripVenueAddress: text(),
  /** The city or region that the trip goes to. */
  consumerTripDestinationName: text(),
  /** The country that the trip goes to. */
  consumerTripDestinationCountryName: text(),
  /** The IATA code of the airport at the destination. */
  consumerTripDestinationAirportCode: text(),
  /** The product that the consumer booked with you. */
  consumerTripExternalProductName: text(),
  /** Whether the trip crosses a border: "true" or "false", a string. Kept as sent whatever it says. */
  consumerTripIsInternational: flag(),
  /** Whether the trip stays within a region: "true" or "false", a string. Kept as sent whatever it says. */
  consumerTripIsRegional: flag(),
  /** Whether the trip stays where the consumer lives: "true" or "false", a string. Kept as sent whatever it says. */
  consumerTripIsLocal: flag(),
  /** When the consumer arrives: a date, or a date-time with its zone. Without a return date, the trip is one-way. */
  consumerTripArrivalDate: date(),
  /** When the consumer travels back: a date, or a date-time with its zone. */
  consumerTripReturnDate: date(),
  /** Your reference of the agent who made the booking. */
  agentPartnerExternalReference: text(),
  /** The agent's time zone, best as an IANA name such as Europe/London. */
  agentTimezone: text(),
  /** The agent's phone number, best in E.164 format. */
  agentPhoneNumber: phone(),
  /** The agent's first name. */
  agentGivenName: text(),
  /** The agent's family name. */
  agentFamilyName: text(),
  /** The agent's e-mail address. */
  agentEmail: email(),
  /** The consumer's language, best as an ISO 639-1 code such as en. */
  consumerLanguage: languageOrNull(),
  /** Your reference of the trip or booking: what update and delete find the booking by. */
  consumerTripPartnerExternalReference: reference(255),
  /** The consumer's e-mail address. */
  consumerEmail: emailOrNull(),
  /** The consumer's nationality, best as an ISO 3166-1 alpha-2 code such as GB. */
  consumerNationality: textOrNull(),
  /** The currency that the consumer prefers, best as an ISO 4217 code such as EUR. */
  consumerCurrency: textOrNull(),
};

/** Names that the interface once had. They are refused, whatever their value, so that no sender goes on unaware. */
const retiredEntries = {
  /** @deprecated Renamed: send consumerTripArrivalDate, and consumerTripReturnDate if the consumer travels back. */
  consumerTripBookingDate: retired(
    "Was renamed: send consumerTripArrivalDate instead, and consumerTripReturnDate if the consumer travels back.",
  ),
  /** @deprecated Removed: leave it out. */
  consumerTripDepartureFlightAirline: retired(
    "Was removed: leave it out. The airline's code is part of consumerTripDepartureFlightNumber.",
  ),
};

const entries = { ...bookingEntries, ...retiredEntries };

/**
 * The payload of create and update: a whole booking, flat, with every field optional but one of the two references.
 * Fields that are not listed may be there too.
 *
 * `validatePayload` applies the same rules and is what the service uses: it says every violation in a fixed order, and
 * keeps fields of any name, where valibot's output leaves out `__proto__`, `constructor` and `prototype`.
 */
export const BookingInput = v.pipe(v.looseObject(entries), requireReference(), requireStorableUnknownFields(entries));
export type BookingInput = v.InferOutput<typeof BookingInput>;

export type BookingFieldName = keyof typeof bookingEntries;

export type BookingField = {
  name: BookingFieldName;
  /** What the string stands for. */
  type: FieldType;
  nullable: boolean;
  /** In Unicode code points. */
  maxLength: number;
};

/** The listed fields, in the contract's order. Violations come in this order too. */
export const bookingFields: readonly BookingField[] = namesOf(bookingEntries).map((name) => {
  const field = bookingEntries[name].wrapped;
  const nullable = field.type === "nullable";
  return { name, nullable, ...v.getMetadata(nullable ? field.wrapped : field) };
});

/** An object literal has no keys but those of its type. */
function namesOf<Entries extends object>(entries: Entries): (keyof Entries)[] {
  return Object.keys(entries) as (keyof Entries)[];
}

function retired(message: string) {
  return v.exactOptional(v.never(message));
}
