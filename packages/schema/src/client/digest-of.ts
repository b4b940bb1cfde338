/**
 * Returns the digest of a booking's content, as `booking` and `reconcile` use it: the SHA-256 of the payload as canonical
 * JSON (RFC 8785), in hex.
 *
 * @param payload of the last create or update, with all fields
 */
export async function digestOf(payload: object): Promise<string> {
  // Leaves out what JSON does, such as fields that are undefined.
  const canonical = toCanonicalJson(JSON.parse(JSON.stringify(payload)));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The names of each object are sorted by their UTF-16 code units, as `<` compares them. */
function toCanonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toCanonicalJson(member)}`).join(",")}}`;
}
