import { bookingFields, toCanonicalJson as writeCanonically } from "@booking-events/schema";

/**
 * Returns the value as canonical JSON (RFC 8785). The order of keys, white space and the content type of the request
 * make no difference, nor how a number is written. Every field and every value does, unknown fields included.
 *
 * @param value parsed JSON
 * @throws if the value is not JSON
 */
export function toCanonicalJson(value: unknown): string {
  const text = writeListedFields(value) ?? writeCanonically(value);
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
 * that it takes to sort the names and write each name and value by itself.
 *
 * @returns null: the value is not such a payload
 */
function writeListedFields(value: unknown): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  if (!Object.values(value).every(isScalar)) return null;
  const payload = { ...template, ...value };
  if (Object.keys(payload).length > bookingFields.length) return null;
  return JSON.stringify(payload);
}

function isScalar(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" || value === null || Number.isFinite(value);
}
