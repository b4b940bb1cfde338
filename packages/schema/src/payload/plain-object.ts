export type PlainObject = Record<string, unknown>;

/**
 * Returns whether the value is an object as JSON and form parsers create it, not an array or an instance of a class.
 * The prototype may be null, or the `Object.prototype` of another window or context.
 */
export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
