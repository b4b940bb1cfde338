import { type FieldWarning, maxWarnings } from "./warning.ts";

/**
 * Returns the warnings as they are if they are not too many. Otherwise those of the request and of listed fields come
 * first, then those of names that are sent instead of listed ones, and as many of the others as there is room for.
 */
export function limitWarnings(warnings: FieldWarning[]): FieldWarning[] {
  if (warnings.length <= maxWarnings) return warnings;
  return warnings.toSorted((one, other) => rankOf(one) - rankOf(other)).slice(0, maxWarnings);
}

function rankOf({ field, propertyPath: [name] }: FieldWarning): number {
  if (name === undefined || name === field) return 0;
  return field === "" ? 2 : 1;
}
