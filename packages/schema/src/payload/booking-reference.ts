import * as v from "valibot";
import { type BookingInput, bookingEntries } from "./booking-input.ts";
import { findReference, type ReferenceKind, requireReference } from "./reference-rule.ts";
import { requireStorableUnknownFields } from "./unknown-fields.ts";

const referenceEntries = {
  /** Your reference for the consumer, if you sent the booking with it. */
  consumerPartnerExternalReference: v.optional(v.custom<string>(() => true)),
  /** Your reference for the trip or booking. */
  consumerTripPartnerExternalReference: bookingEntries.consumerTripPartnerExternalReference,
};

/**
 * The payload of delete: the booking's reference. All else is kept as sent, even what create would refuse, so a partner
 * may send the whole booking again, in whatever state it is.
 */
export const BookingReference = v.pipe(
  v.looseObject(referenceEntries),
  requireReference(),
  requireStorableUnknownFields((payload) => namesWithRulesInDelete(payload)),
);
export type BookingReference = { [Name in keyof typeof referenceEntries]?: string | undefined } & {
  [name: string]: unknown;
};

/** A trip reference is a text in any case. The consumer's has a rule if it identifies the booking. */
export function namesWithRulesInDelete(payload: object): ReadonlySet<string> {
  return new Set(["consumerTripPartnerExternalReference", findReference(payload)?.name ?? ""]);
}

/**
 * Returns the reference that identifies the payload's booking, as `cleanReference` makes it: the trip reference, or the
 * consumer reference if there is none.
 *
 * @param payload a payload that `validatePayload` has accepted
 */
export function bookingReferenceOf(payload: BookingInput | BookingReference): string {
  const { reference = "" } = findReference(payload) ?? {};
  if (reference === "") throw new TypeError("The payload has no reference. Validate it first.");
  return reference;
}

/**
 * Returns whether {@link bookingReferenceOf} returns the payload's trip reference or its consumer reference.
 *
 * @param payload a payload that `validatePayload` has accepted
 */
export function referenceKindOf(payload: BookingInput | BookingReference): ReferenceKind {
  return findReference(payload)?.kind ?? "consumer";
}
