import { createHash } from "node:crypto";

/** Larger payloads, by the ten thousand, would fill the memory of whoever compares them. */
const longestKeptCharacters = 1_024;

/**
 * A payload as text that is the same whatever the order of its keys: PostgreSQL's jsonb does not keep it. A long text is
 * replaced by its digest.
 */
export function canonicalContent(payload: unknown): string {
  const text = JSON.stringify(payload, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  if (text.length <= longestKeptCharacters) return text;
  return `SHA-256 ${createHash("sha256").update(text).digest("hex")}`;
}
