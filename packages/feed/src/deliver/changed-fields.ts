import { toCanonicalJson } from "@booking-events/schema";
import type { BookingChange } from "../read-changes.ts";

/** @returns null: a content that is needed is gone */
export function changedFields(change: BookingChange): string[] | null {
  const { payload, payloadState, previousPayload, previousPayloadState } = change;
  const isKnown =
    (payloadState === "as-changed" || payloadState === "deleted") &&
    (previousPayloadState === "as-changed" || previousPayloadState === "none");
  if (!isKnown) return null;
  const [before, after] = [fieldsOf(previousPayload), fieldsOf(payload)];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => toCanonicalJson(before[name]) !== toCanonicalJson(after[name]));
}

/** Whatever the partner has sent, in fields that the contract does not list too. */
function fieldsOf(payload: object | null): Record<string, unknown> {
  return { ...payload };
}
