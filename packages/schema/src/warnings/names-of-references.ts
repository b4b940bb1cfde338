/** In a file of its own, so that the validator's bundle has no other names. */

const endings = ["reference", "referenceNumber", "referenceId", "referenceNo", "ref", "refNo", "id"].concat(
  ["externalReference", "externalRef", "externalId", "partnerReference", "partnerRef"],
  ["partnerExternalReference", "partnerExternalRef", "partnerExternalId"],
);

/** What other systems call the reference of these, and further endings of theirs. */
export function referencesOf(owners: readonly string[], more: readonly string[] = []): string[] {
  return owners.flatMap((owner) => [...endings, ...more].map((ending) => owner + ending));
}

/** What other systems call the references that identify a booking. */
export const otherReferenceNames = {
  consumerTripPartnerExternalReference: [
    ...referencesOf(["consumerTrip", "consumerBooking", "trip", "booking", "reservation"], ["number", "no"]),
    ...["reference", "externalReference", "bookingConfirmationNumber"],
  ],
  consumerPartnerExternalReference: [
    ...referencesOf(["consumer"]),
    ...["customerId", "customerNumber", "customerExternalId", "guestId", "guestExternalId"],
  ],
};
