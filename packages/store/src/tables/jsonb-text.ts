import { bookingFields } from "@booking-events/schema";

/** All listed fields in the order of their names in jsonb: shorter ones first, then by their bytes. */
const template = Object.fromEntries(
  bookingFields
    .map(({ name }) => name)
    .toSorted()
    .toSorted((one, other) => one.length - other.length)
    .map((name) => [name, undefined]),
);

/**
 * Returns the payload as JSON text that PostgreSQL turns into jsonb fast. It sorts the fields by their names, which
 * takes a tenth of what an event costs it. Fields that are sorted already cost it one comparison each. Unknown fields
 * are at the end.
 */
export function toJsonbText(payload: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ ...template, ...payload });
}
