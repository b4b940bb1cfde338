/** A payload as text that is the same whatever the order of its keys: PostgreSQL's jsonb does not keep it. */
export function canonicalContent(payload: unknown): string {
  return JSON.stringify(payload, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
