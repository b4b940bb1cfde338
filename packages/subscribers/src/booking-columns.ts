import type { BookingChange } from "@booking-events/feed";
import { type BookingFieldName, type BookingPayload, bookingFields } from "@booking-events/schema";
import { type NormalisedBooking, normaliseBooking } from "@booking-events/schema/normalise";
import { toColumnName } from "@booking-events/store";

/**
 * The columns of `booking_details` that a change of the booking tells: all but the times of the booking itself. They
 * have the same names and values.
 */
export function toBookingColumns(change: BookingChange, payload: BookingPayload): Record<string, unknown> {
  const read = normaliseBooking(payload, { defaultCountry: change.defaultCountry });
  const columns: Record<string, unknown> = {
    booking_id: change.bookingId,
    partner: change.partner,
    reference_kind: change.referenceKind,
    reference: change.reference,
    state: "active",
    sequence: change.sequence,
  };
  for (const { name } of bookingFields) columns[columnAsSent(name)] = toText(payload[name]);
  for (const [key, value] of Object.entries(read)) columns[columnAsRead(key as keyof NormalisedBooking)] = value;
  return columns;
}

/** Such fields keep their column, and the value that was read has one besides. */
const keptAsSent = new Set<string>([
  "consumerEmail",
  "consumerNationality",
  "consumerCurrency",
  "consumerTripDepartureCountryName",
  "consumerTripDepartureAirportCode",
  "consumerTripDestinationCountryName",
  "consumerTripDestinationAirportCode",
  "agentTimezone",
  "agentEmail",
] satisfies (keyof NormalisedBooking & BookingFieldName)[]);

const readFields = new Set(Object.keys(normaliseBooking({}, { defaultCountry: null })));

function columnAsSent(field: string): string {
  const column = toColumnName(field);
  return readFields.has(field) && !keptAsSent.has(field) ? `${column}_as_sent` : column;
}

function columnAsRead(key: string): string {
  const column = toColumnName(key);
  return keptAsSent.has(key) ? `${column}_normalised` : column;
}

/** As `->>` of PostgreSQL reads a value of the payload. */
function toText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}
