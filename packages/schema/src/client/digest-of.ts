import { toCanonicalJson } from "../json/canonical-json.ts";

/**
 * Returns the digest of a booking's content, as `booking` and `reconcile` use it: the SHA-256 of the payload as canonical
 * JSON (RFC 8785), in hex. In its texts, U+0000 and halves of surrogate pairs are U+FFFD, as the service stores them.
 *
 * @param payload of the last create or update, with all fields
 */
export async function digestOf(payload: object): Promise<string> {
  const json = toStorableJson(toCanonicalJson(payload, toStorable));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(json));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** In JSON, only these escapes are of characters that a database can't store. Pairs of surrogates have none. */
function toStorableJson(json = ""): string {
  return json.replace(/\\(u0000|ud[89a-f][0-9a-f]{2}|.)/g, (written, code) => (code.length === 1 ? written : "\ufffd"));
}

function toStorable(name: string): string {
  return name.toWellFormed().replaceAll("\0", "\ufffd");
}
