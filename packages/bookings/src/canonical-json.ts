import canonicalize from "canonicalize";

/**
 * Returns the value as canonical JSON (RFC 8785). The order of keys, white space and the content type of the request
 * make no difference. Every field and every value does, unknown fields included.
 */
export function toCanonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("The value is not JSON.");
  return text;
}
