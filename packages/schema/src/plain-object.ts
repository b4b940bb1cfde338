export type PlainObject = Record<string, unknown>;

/**
 * Whether the value is what JSON and form parsers make of an object: no array, no instance of a class. The prototype
 * may be absent, or the `Object.prototype` of another window or context.
 */
export function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}
