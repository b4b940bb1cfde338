import { bookingFields } from "@booking-events/schema";
import canonicalize from "canonicalize";

/**
 * Returns the value as canonical JSON (RFC 8785). The order of keys, white space and the content type of the request
 * make no difference. Every field and every value does, unknown fields included.
 *
 * @throws if the value is not JSON, or contains an unpaired surrogate
 */
export function toCanonicalJson(value: unknown): string {
  const text = writeListedFields(value) ?? canonicalize(value);
  if (text === undefined) throw new TypeError("The value is not JSON.");
  return text;
}

/** All listed fields in canonical order. JSON.stringify leaves out those that are undefined. */
const template = Object.fromEntries(
  bookingFields
    .map(({ name }) => name)
    .toSorted()
    .map((name) => [name, undefined]),
);

/**
 * Most payloads have listed fields only. V8 then fills in a copy of the template and writes it in a third of the time
 * that canonicalize takes to sort the names and write each name and value by itself.
 *
 * @returns null: the value is not such a payload, or JSON.stringify would not write it in canonical form
 */
function writeListedFields(value: unknown): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  if (!Object.values(value).every(isScalar)) return null;
  const payload = { ...template, ...value };
  if (Object.keys(payload).length > bookingFields.length) return null;
  const text = JSON.stringify(payload);
  // JSON.stringify escapes an unpaired surrogate, such as \ud800. canonicalize throws.
  return text.includes("\\ud") ? null : text;
}

function isScalar(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" || value === null || Number.isFinite(value);
}
