import { type BookingPayload, cleanReference } from "@booking-events/schema";
import { type NormalisedBooking, normaliseBooking } from "@booking-events/schema/normalise";
import { bigints, booleans, days, moments, texts } from "../connect/binary-arrays.ts";
import { bookingKey, consumerHash } from "./booking-key.ts";
import type { BookingIdentity } from "./bookings.ts";
import type { Column } from "./columns.ts";

/** What an event has sent, with what it takes to read it. */
export interface SentContent {
  payload: BookingPayload;
  /** See `booking_events.default_country`. */
  defaultCountry: string | null;
}

/** The columns of `bookings` that follow from the content. The names are those of the columns, but in camel case. */
export interface ContentColumns extends NormalisedBooking {
  defaultCountry: string | null;
  consumerHash: number | null;
}

interface ColumnType<Value> {
  sql: string;
  encode: (values: Value[]) => Buffer;
}

const text: ColumnType<string | null> = { sql: "text", encode: texts };
const flag: ColumnType<boolean | null> = { sql: "boolean", encode: booleans };
const day: ColumnType<string | null> = { sql: "date", encode: days };
const moment: ColumnType<string | null> = { sql: "timestamptz", encode: moments };
const bigint: ColumnType<number | null> = { sql: "bigint", encode: bigints };

const types: { [Key in keyof ContentColumns]: ColumnType<ContentColumns[Key]> } = {
  defaultCountry: text,
  consumerHash: bigint,
  consumerPhone: text,
  consumerPhoneIsAssumed: flag,
  consumerEmail: text,
  consumerLanguage: text,
  consumerNationality: text,
  consumerCurrency: text,
  consumerTripIsInternational: flag,
  consumerTripIsRegional: flag,
  consumerTripIsLocal: flag,
  consumerTripArrivalDate: day,
  consumerTripArrivalAt: moment,
  consumerTripReturnDate: day,
  consumerTripReturnAt: moment,
  consumerTripDepartureCountryName: text,
  consumerTripDepartureCountryCode: text,
  consumerTripDepartureAirportCode: text,
  consumerTripDestinationCountryName: text,
  consumerTripDestinationCountryCode: text,
  consumerTripDestinationAirportCode: text,
  agentTimezone: text,
  agentPhoneNumber: text,
  agentPhoneNumberIsAssumed: flag,
  agentEmail: text,
};

export const contentColumns: readonly Column<ContentColumns>[] = Object.entries(types).map(
  ([key, { sql, encode }]) => ({
    name: toColumnName(key),
    type: sql,
    // Each type encodes what its key holds.
    encode: (rows) => (encode as (values: unknown[]) => Buffer)(rows.map((row) => row[key as keyof ContentColumns])),
  }),
);

/** Selects what a column holds, as {@link NormalisedBooking} has it, under its name there. */
export function selectContent(key: keyof NormalisedBooking): string {
  const { sql } = types[key];
  const column = toColumnName(key);
  if (sql === "date") return `${column}::text as "${key}"`;
  // In UTC, as JavaScript writes it.
  if (sql === "timestamptz")
    return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${key}"`;
  return `${column} as "${key}"`;
}

export function toColumnName(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** @param content null: the booking has none */
export function deriveColumns(
  { partner, referenceKind }: Pick<BookingIdentity, "partner" | "referenceKind">,
  content: SentContent | null,
): ContentColumns {
  if (content === null) return noContent;
  const { payload, defaultCountry } = content;
  const consumer = referenceKind === "trip" ? referenceOfConsumer(payload) : "";
  return {
    ...normaliseBooking(payload, { defaultCountry }),
    defaultCountry,
    consumerHash: consumer === "" ? null : consumerHash(bookingKey(partner, "consumer", consumer)),
  };
}

const noContent: ContentColumns = {
  ...normaliseBooking({}, { defaultCountry: null }),
  defaultCountry: null,
  consumerHash: null,
};

function referenceOfConsumer({ consumerPartnerExternalReference: sent }: BookingPayload): string {
  return typeof sent === "string" ? cleanReference(sent) : "";
}
