import * as v from "valibot";
import { type BookingInput, bookingEntries } from "./booking-input.ts";
import { requireReference } from "./reference-rule.ts";
import { requireStorableUnknownFields } from "./unknown-fields.ts";

const entries = {
  /** Your reference for the consumer, if you sent the booking with it. */
  consumerPartnerExternalReference: bookingEntries.consumerPartnerExternalReference,
  /** Your reference for the trip or booking. */
  consumerTripPartnerExternalReference: bookingEntries.consumerTripPartnerExternalReference,
};

/**
 * The payload of delete: the booking's reference. All other fields count as unlisted, even those that create lists, so
 * a partner may send the whole booking again, even with values that create would refuse.
 */
export const BookingReference = v.pipe(
  v.looseObject(entries),
  requireReference(),
  requireStorableUnknownFields(entries),
);
export type BookingReference = v.InferOutput<typeof BookingReference>;

/**
 * Returns the reference that identifies the payload's booking: the trip reference, or the consumer reference if there
 * is none.
 *
 * @param payload a payload that `validatePayload` has accepted
 */
export function bookingReferenceOf(payload: BookingInput | BookingReference): string {
  const { consumerTripPartnerExternalReference: trip, consumerPartnerExternalReference: consumer } = payload;
  const reference = trip === undefined ? consumer : trip;
  if (typeof reference !== "string") throw new TypeError("The payload has no reference. Validate it first.");
  return reference;
}

export const referenceKinds = ["trip", "consumer"] as const;
/** Trip and consumer references are separate namespaces: the same text names two different bookings. */
export type ReferenceKind = (typeof referenceKinds)[number];

/**
 * Returns whether {@link bookingReferenceOf} returns the payload's trip reference or its consumer reference.
 *
 * @param payload a payload that `validatePayload` has accepted
 */
export function referenceKindOf(payload: BookingInput | BookingReference): ReferenceKind {
  return payload.consumerTripPartnerExternalReference === undefined ? "consumer" : "trip";
}
