import { toCanonicalJson } from "../json/canonical-json.ts";

/**
 * Returns the digest of a booking's content, as `booking` and `reconcile` use it: the SHA-256 of the payload as canonical
 * JSON (RFC 8785), in hex.
 *
 * @param payload of the last create or update, with all fields
 */
export async function digestOf(payload: object): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(toCanonicalJson(payload)));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
