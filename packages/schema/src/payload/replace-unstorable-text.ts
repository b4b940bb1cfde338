import { limitWarnings } from "../warnings/limit-warnings.ts";
import { type FieldWarning, maxWarnings } from "../warnings/warning.ts";
import { bookingFields } from "./booking-input.ts";
import { countJsonValues, maxJsonValues } from "./count-json-values.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { shortenName } from "./property-path.ts";
import { findReference } from "./reference-rule.ts";
import { isStorableText } from "./storable-text.ts";
import { maxNestingLevels } from "./unknown-fields.ts";

const ownField = { configurable: true, enumerable: true, writable: true };

interface Search {
  path: string[];
  warnings: FieldWarning[];
  hasEqualNames: boolean;
}

/**
 * Replaces, in the payload itself, what a database can't store in texts and names: each U+0000 and each half of a
 * surrogate pair becomes U+FFFD. The text that identifies the booking is left for `validatePayload` to refuse, since
 * another one would identify another booking. So is what is nested so deep that it is refused, and all of a payload that is
 * refused for its number of values.
 *
 * @returns a warning for each place, up to `maxWarnings` and listed fields first; and whether two names of an object would become equal. The
 *   payload must be refused then
 */
export function replaceUnstorableText(payload: PlainObject): { warnings: FieldWarning[]; hasEqualNames: boolean } {
  const search: Search = { path: [], warnings: [], hasEqualNames: false };
  if (countJsonValues(payload) <= maxJsonValues) replaceIn(search, payload, findReference(payload)?.name);
  const { warnings, hasEqualNames } = search;
  return { warnings: limitWarnings(warnings), hasEqualNames };
}

/** Recursive; the nesting limit also bounds the stack. */
function replaceIn(search: Search, container: PlainObject | unknown[], exempt?: string): void {
  if (!Array.isArray(container)) replaceNames(search, container);
  for (const name of Object.keys(container)) {
    if (name === exempt) continue;
    const value = (container as PlainObject)[name];
    search.path.push(name);
    if (typeof value === "string") {
      if (!isStorableText(value)) {
        (container as PlainObject)[name] = toStorable(value);
        warn(search, `U+0000 or half of a surrogate pair was replaced by U+FFFD. ${advice}`);
      }
    } else if ((Array.isArray(value) || isPlainObject(value)) && search.path.length < maxNestingLevels) {
      replaceIn(search, value);
    }
    search.path.pop();
  }
}

/** All names are added again if one is replaced, so that they keep their order. */
function replaceNames(search: Search, object: PlainObject): void {
  const entries = Object.entries(object);
  if (entries.every(([name]) => isStorableText(name))) return;
  for (const [name] of entries) delete object[name];
  for (const [name, value] of entries) {
    const storable = toStorable(name);
    if (Object.hasOwn(object, storable)) search.hasEqualNames = true;
    // An assignment to `__proto__` would set the prototype.
    Object.defineProperty(object, storable, { ...ownField, value });
    if (storable === name) continue;
    search.path.push(storable);
    warn(search, `In the name, U+0000 or half of a surrogate pair was replaced by U+FFFD. ${advice}`);
    search.path.pop();
  }
}

const advice = "A database cannot store it. Check how the text was encoded or truncated.";

function warn({ path, warnings }: Search, message: string): void {
  const field = bookingFields.find(({ name }) => name === path[0])?.name ?? "";
  if (field === "" && warnings.length >= maxWarnings) return;
  warnings.push({ message, code: "unstorable-text", propertyPath: path.map(shortenName), field });
}

function toStorable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
