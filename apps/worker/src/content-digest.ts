import { hash } from "node:crypto";
import canonicalize from "canonicalize";

/**
 * SHA-256, in hex, of the payload's canonical JSON (RFC 8785): the order of keys, white space and the content type that
 * it was sent in make no difference; every field and value does, unknown ones too.
 */
export function contentDigest(payload: unknown): string {
  const text = canonicalize(payload);
  if (text === undefined) throw new TypeError("The payload is not a JSON value.");
  return hash("sha256", text, "hex");
}
