import { isStorableText, unstorableTextMessage } from "./storable-text.ts";
import type { Violation } from "./violation.ts";

/**
 * Far more than partners may send, and far less than what PostgreSQL's stack and ours hold: a value that was accepted is
 * never refused for its depth, whatever a release allows.
 */
const maxStorableLevels = 500;

/**
 * What a database could not hold, or not as what it is.
 *
 * @param value what was parsed as JSON
 * @returns the first such thing; null: there is none
 */
export function findUnstorable(value: unknown, propertyPath: string[] = []): Violation | null {
  if (typeof value === "string") return isStorableText(value) ? null : { message: unstorableTextMessage, propertyPath };
  if (typeof value === "number")
    return Number.isFinite(value) ? null : { message: "Must be a finite number.", propertyPath };
  if (typeof value !== "object" || value === null) return null;
  if (propertyPath.length >= maxStorableLevels)
    return { message: `Must be nested at most ${maxStorableLevels} levels deep.`, propertyPath };
  for (const name of Object.keys(value)) {
    const path = [...propertyPath, name];
    if (!isStorableText(name)) return { message: `The field's name: ${unstorableTextMessage}`, propertyPath: path };
    const found = findUnstorable((value as Record<string, unknown>)[name], path);
    if (found !== null) return found;
  }
  return null;
}
