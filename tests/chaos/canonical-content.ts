import { createHash } from "node:crypto";

/** Ten thousand larger ones would fill the memory of this process. */
const longestKeptCharacters = 1_024;

/** A payload as text, or its digest if it is long. The order of keys does not matter: PostgreSQL's jsonb changes it. */
export function canonicalContent(payload: unknown): string {
  const text = JSON.stringify(payload, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  if (text.length <= longestKeptCharacters) return text;
  return `SHA-256 ${createHash("sha256").update(text).digest("hex")}`;
}
