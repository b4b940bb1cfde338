import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import { bookingKey } from "@booking-events/store";

/** @param kind undefined: the keys of both kinds */
export function keysOf(partner: string, reference: string, kind: ReferenceKind | undefined): Buffer[] {
  return (kind === undefined ? referenceKinds : [kind]).map((any) => bookingKey(partner, any, reference));
}
