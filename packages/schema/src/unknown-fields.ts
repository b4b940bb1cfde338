import * as v from "valibot";
import { countJsonValues, maxJsonValues, tooManyValues } from "./count-json-values.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { isStorableText, unstorableTextMessage } from "./storable-text.ts";
import { maxViolations, type Violation } from "./violation.ts";

/** Objects and arrays count, the payload itself as the first. JSON and PostgreSQL know no limit but their stacks. */
export const maxNestingLevels = 16;

/** A long name with many violations below it would otherwise make an answer of megabytes. */
const maxNameLength = 255;

const tooDeepMessage = `Must be nested at most ${maxNestingLevels} levels deep, the payload itself being the first. Send it flatter, or as a string.`;
const inexactNumberMessage =
  "Must be a number that a double holds as it is written, and within ±9,007,199,254,740,991 if it is whole. Send it as a string.";
const notJsonMessage = "Must be a value of JSON: a string, a number, true, false, null, an array or an object.";
const unstorableNameMessage = `The field's name: ${unstorableTextMessage}`;

/**
 * Fields that the contract does not list are kept as they are, so all that is asked of them is that they can be: stored
 * by PostgreSQL, and read by others as the same value.
 *
 * @param knownNames fields that have rules of their own, and are not looked at
 * @returns violations in the order of the payload's keys, those of a value before those inside it. The search ends at
 *   about `maxViolations`. Only `tooManyValues` when the search came upon too many; it counts none inside known fields
 */
export function checkUnknownFields(payload: PlainObject, knownNames: Pick<ReadonlySet<string>, "has">): Violation[] {
  const names = Object.keys(payload);
  const search: Search = { violations: [], path: [], valueCount: 1 + names.length };
  for (const name of names) {
    if (!knownNames.has(name)) checkField(search, name, payload[name]);
  }
  return search.valueCount > maxJsonValues ? [tooManyValues] : search.violations;
}

/** The same as a step of a valibot pipe. valibot leaves out fields named `__proto__`, `constructor` or `prototype`. */
export function requireStorableUnknownFields<Payload extends object>(knownEntries: object) {
  const knownNames = new Set(Object.keys(knownEntries));
  return v.rawCheck<Payload>(({ dataset, addIssue }) => {
    const payload: unknown = dataset.value;
    if (!isPlainObject(payload)) return;
    if (countJsonValues(payload) > maxJsonValues) return addIssue({ message: tooManyValues.message });
    for (const { message, propertyPath } of checkUnknownFields(payload, knownNames)) {
      const [name = "", ...rest] = propertyPath;
      addIssue({ message, path: [toPathItem(payload, name), ...rest.map((key) => toPathItem(payload[name], key))] });
    }
  });
}

interface Search {
  violations: Violation[];
  /** Where the search is. What it finds there has as many levels around it as the path has names. */
  path: string[];
  /** Of all containers that the search came upon: themselves, and what is right inside them. */
  valueCount: number;
}

function checkField(search: Search, name: string, value: unknown): void {
  if (search.violations.length >= maxViolations || search.valueCount > maxJsonValues) return;
  search.path.push(name);
  if (!isStorableText(name)) report(search, unstorableNameMessage);
  checkValue(search, value);
  search.path.pop();
}

/** Calls itself for each level, so the limit on levels bounds the stack too. */
function checkValue(search: Search, value: unknown): void {
  if (typeof value === "string") {
    if (!isStorableText(value)) report(search, unstorableTextMessage);
  } else if (typeof value === "number") {
    if (!isExactNumber(value)) report(search, inexactNumberMessage);
  } else if (Array.isArray(value) || isPlainObject(value)) {
    if (search.path.length < maxNestingLevels) checkItems(search, value);
    else report(search, tooDeepMessage);
  } else if (value !== null && typeof value !== "boolean") {
    report(search, notJsonMessage);
  }
}

function checkItems(search: Search, value: unknown[] | PlainObject): void {
  if (Array.isArray(value)) {
    search.valueCount += value.length;
    for (let index = 0; index < value.length; index += 1) {
      checkField(search, String(index), value[index]);
    }
    return;
  }
  const names = Object.keys(value);
  search.valueCount += names.length;
  for (const name of names) {
    checkField(search, name, value[name]);
  }
}

/**
 * A whole number beyond 2^53 may have been another one in the text that was sent: 9007199254740993 reads as …992. And
 * 1e400 reads as Infinity, for which JSON has no text. Whoever parsed the text may say by NaN that another number was
 * rounded.
 */
function isExactNumber(value: number): boolean {
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
}

function report({ violations, path }: Search, message: string): void {
  violations.push({ message, propertyPath: path.map(shorten) });
}

/** Whole characters only: many JSON readers refuse half of a surrogate pair, and with it the whole answer. */
function shorten(name: string): string {
  if (name.length <= maxNameLength) return name.toWellFormed();
  const isCutInPair = (name.codePointAt(maxNameLength - 1) ?? 0) > 0xffff;
  return `${name.slice(0, isCutInPair ? maxNameLength - 1 : maxNameLength)}…`.toWellFormed();
}

function toPathItem(input: unknown, key: string): v.UnknownPathItem {
  return { type: "unknown", origin: "value", input, key, value: undefined };
}
