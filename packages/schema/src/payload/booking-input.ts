import * as v from "valibot";
import { anyEmail, anyText, date, email, type FieldType, flag, languageOrNull, phone, text } from "./field-types.ts";
import { requireReference } from "./reference-rule.ts";
import { requireStorableUnknownFields } from "./unknown-fields.ts";

/**
 * The listed fields, in the contract's order. All are optional, and none may be null unless its type says so. Each
 * comment is also the field's description in the JSON Schema: run `npm run json-schema` after a change.
 */
export const bookingEntries = {
  /** The consumer's first name, without the family name. */
  consumerGivenName: text(),
  /** Your reference for the consumer. Identifies the booking only if there is no trip reference. */
  consumerPartnerExternalReference: text(),
  /** The consumer's phone number, preferably in E.164 format, such as +442071838750. Other formats are kept. */
  consumerPhone: phone(),
  /** The city where the trip starts. */
  consumerTripDepartureCityName: text(),
  /** The country where the trip starts. */
  consumerTripDepartureCountryName: text(),
  /** The IATA code of the airport where the trip starts. */
  consumerTripDepartureAirportCode: text(),
  /** The airport where the trip starts. */
  consumerTripDepartureAirportName: text(),
  /** The number of the consumer's departure flight. */
  consumerTripDepartureFlightNumber: text(),
  /** The airport where the consumer arrives. */
  consumerTripArrivalAirportName: text(),
  /** The number of the consumer's arrival flight. */
  consumerTripArrivalFlightNumber: text(),
  /** The hotel or other accommodation. */
  consumerTripAccommodationName: text(),
  /** The accommodation's address. */
  consumerTripAccommodationAddress: text(),
  /** The venue of the trip. */
  consumerTripVenueName: text(),
  /** The venue's address. */
  consumerTripVenueAddress: text(),
  /** The destination city or region. */
  consumerTripDestinationName: text(),
  /** The destination country. */
  consumerTripDestinationCountryName: text(),
  /** The IATA code of the destination airport. */
  consumerTripDestinationAirportCode: text(),
  /** The product that the consumer booked with you. */
  consumerTripExternalProductName: text(),
  /** Whether the trip crosses a border: the string "true" or "false". Other strings are kept as sent. */
  consumerTripIsInternational: flag(),
  /** Whether the trip stays within a region: the string "true" or "false". Other strings are kept as sent. */
  consumerTripIsRegional: flag(),
  /** Whether the trip stays where the consumer lives: the string "true" or "false". Other strings are kept as sent. */
  consumerTripIsLocal: flag(),
  /** When the consumer arrives: a date, or a date-time with a time zone. Without a return date, the trip is one-way. */
  consumerTripArrivalDate: date(),
  /** When the consumer travels back: a date, or a date-time with a time zone. */
  consumerTripReturnDate: date(),
  /** Your reference for the agent who made the booking. */
  agentPartnerExternalReference: text(),
  /** The agent's time zone, preferably an IANA name such as Europe/London. */
  agentTimezone: text(),
  /** The agent's phone number, preferably in E.164 format. */
  agentPhoneNumber: phone(),
  /** The agent's first name. */
  agentGivenName: text(),
  /** The agent's family name. */
  agentFamilyName: text(),
  /** The agent's e-mail address. */
  agentEmail: email(),
  /** The consumer's language, preferably an ISO 639-1 code such as en. */
  consumerLanguage: languageOrNull(),
  /** Your reference for the trip or booking. It identifies the booking in later updates and deletes. */
  consumerTripPartnerExternalReference: text(255),
  /** The consumer's e-mail address. */
  consumerEmail: anyEmail(),
  /** The consumer's nationality, preferably an ISO 3166-1 alpha-2 code such as GB. */
  consumerNationality: anyText(),
  /** The consumer's preferred currency, preferably an ISO 4217 code such as EUR. */
  consumerCurrency: anyText(),
};

/** Names from earlier versions of the interface. They are kept like unlisted ones, and the sender is warned. */
const retiredEntries = {
  /** @deprecated Renamed. Send consumerTripArrivalDate, and consumerTripReturnDate if the consumer travels back. */
  consumerTripBookingDate: v.optional(v.unknown()),
  /** @deprecated Removed. The airline's code is part of consumerTripDepartureFlightNumber. */
  consumerTripDepartureFlightAirline: v.optional(v.unknown()),
};

/**
 * The payload of create and update: a complete booking as a flat object. Every field is optional except that one of the
 * two references must be present. Unlisted fields are allowed.
 *
 * The service calls `validatePayload`, which applies the same rules. It also reports violations in a fixed order and
 * keeps fields of any name, while valibot's output leaves out `__proto__`, `constructor` and `prototype`.
 */
export const BookingInput = v.pipe(
  v.looseObject({ ...bookingEntries, ...retiredEntries }),
  requireReference(),
  requireStorableUnknownFields(() => namesWithRules),
);
/** A mapped type, because editors show the comments of the entries only then. `undefined` is the same as left out. */
export type BookingInput = {
  [Name in keyof typeof bookingEntries]?: v.InferOutput<(typeof bookingEntries)[Name]["wrapped"]> | undefined;
} & { [Name in keyof typeof retiredEntries]?: unknown } & { [name: string]: unknown };

export type BookingFieldName = keyof typeof bookingEntries;

export type BookingField = {
  name: BookingFieldName;
  /** What the string represents. */
  type: FieldType;
  nullable: boolean;
  /** In Unicode code points. Of the trip reference, as it is compared. */
  maxLength: number;
  /** Whether a value of any type and length is accepted and kept. What is no string of that type counts as no value. */
  acceptsAnything: boolean;
};

/** The listed fields, in the contract's order. Violations are reported in the same order. */
export const bookingFields: readonly BookingField[] = namesOf(bookingEntries).map((name) => {
  const field = bookingEntries[name].wrapped;
  const metadata = v.getMetadata(field.type === "nullable" ? field.wrapped : field);
  const acceptsAnything = "acceptsAnything" in metadata;
  return { name, ...metadata, nullable: acceptsAnything || field.type === "nullable", acceptsAnything };
});

/** The listed fields that can violate a rule of their own. */
export const namesWithRules: ReadonlySet<string> = new Set(
  bookingFields.filter(({ acceptsAnything }) => !acceptsAnything).map(({ name }) => name),
);

/** The cast is safe because an object literal has exactly the keys of its type. */
function namesOf<Entries extends object>(entries: Entries): (keyof Entries)[] {
  return Object.keys(entries) as (keyof Entries)[];
}
