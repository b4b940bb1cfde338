import canonicalize from "canonicalize";

/**
 * The value's canonical JSON (RFC 8785): the order of keys, white space and the content type that it was sent in make no
 * difference; every field and value does, unknown ones too.
 */
export function toCanonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("This is not a JSON value.");
  return text;
}
