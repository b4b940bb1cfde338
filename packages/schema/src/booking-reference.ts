import * as v from "valibot";
import { type BookingInput, bookingEntries } from "./booking-input.ts";
import { requireReference } from "./reference-rule.ts";
import { requireStorableUnknownFields } from "./unknown-fields.ts";

const entries = {
  /** Your reference of the consumer, if that is what the booking was sent with. */
  consumerPartnerExternalReference: bookingEntries.consumerPartnerExternalReference,
  /** Your reference of the trip or booking. */
  consumerTripPartnerExternalReference: bookingEntries.consumerTripPartnerExternalReference,
};

/**
 * The payload of delete: the booking's reference. Any other field is an unknown one, even if create lists it, so that a
 * partner may send the whole booking once more, whatever state its other fields are in.
 */
export const BookingReference = v.pipe(
  v.looseObject(entries),
  requireReference(),
  requireStorableUnknownFields(entries),
);
export type BookingReference = v.InferOutput<typeof BookingReference>;

/**
 * Which booking a payload means: its trip reference, else its consumer reference.
 *
 * @param payload one that `validatePayload` has accepted
 */
export function bookingReferenceOf(payload: BookingInput | BookingReference): string {
  const { consumerTripPartnerExternalReference: trip, consumerPartnerExternalReference: consumer } = payload;
  const reference = trip === undefined ? consumer : trip;
  if (typeof reference !== "string")
    throw new TypeError("Only a payload that was validated is sure to have a reference.");
  return reference;
}

export const referenceKinds = ["trip", "consumer"] as const;
/** Two namespaces: a trip and a consumer with the same reference are two bookings. */
export type ReferenceKind = (typeof referenceKinds)[number];

/**
 * Whether a payload's {@link bookingReferenceOf} is one of a trip or of a consumer.
 *
 * @param payload one that `validatePayload` has accepted
 */
export function referenceKindOf(payload: BookingInput | BookingReference): ReferenceKind {
  return payload.consumerTripPartnerExternalReference === undefined ? "consumer" : "trip";
}
