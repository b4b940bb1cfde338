import * as v from "valibot";
import { countDigits, type ExactNumber, isJsonNumber } from "../json/exact-number.ts";
import { countJsonValues, maxJsonValues, tooManyValues } from "./count-json-values.ts";
import { formatCount } from "./format-count.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { shortenName } from "./property-path.ts";
import { maxViolations, type Violation, type ViolationCode } from "./violation.ts";

/** Objects and arrays count, including the payload itself. JSON and PostgreSQL have no limit except their stacks. */
export const maxNestingLevels = 16;

/**
 * Counted as if the number were written without an exponent, which is how PostgreSQL stores it: `1e400` is short to send
 * and long to store. The digits before and after the point count, also a single zero before it.
 */
export const maxDigits = 1_000;
/** Of all numbers in a payload together. */
export const maxDigitsInPayload = 20_000;

const tooDeepMessage =
  `Must be nested at most ${maxNestingLevels} levels deep, counting the payload as the first level. Flatten ` +
  "it, or send it as a string.";
const tooManyDigitsMessage = `Must be a number of at most ${formatCount(maxDigits)} digits, written without an exponent. Send it as a string.`;
const tooManyDigitsInPayload: Violation = {
  message:
    `The numbers of the payload must have at most ${formatCount(maxDigitsInPayload)} digits together, written without ` +
    "exponents. Send them as strings.",
  code: "too-many-digits",
  propertyPath: [],
};
const notJsonMessage = "Must be a JSON value: a string, a number, true, false, null, an array or an object.";

/**
 * Checks the fields that the contract does not list. They are kept as sent, so they only need to be values that
 * PostgreSQL can store, apart from texts in which `replaceUnstorableText` replaces something.
 *
 * @param knownNames fields with rules of their own, which are skipped
 * @returns violations in the order of the payload's keys, with those of a value before those inside it. The search
 *   stops at about `maxViolations`. If there are too many values outside the known fields, the result is only
 *   `tooManyValues`
 */
export function checkUnknownFields(payload: PlainObject, knownNames: ReadonlySet<string>): Violation[] {
  const names = Object.keys(payload);
  const search: Search = { violations: [], path: [], valueCount: 1 + names.length, digitCount: 0 };
  if (search.valueCount > maxJsonValues) return [tooManyValues];
  for (const name of names) {
    if (!knownNames.has(name) && payload[name] !== undefined) checkField(search, name, payload[name]);
  }
  return search.valueCount > maxJsonValues ? [tooManyValues] : search.violations;
}

/**
 * {@link checkUnknownFields} as a step of a valibot pipe. valibot does not pass on fields named `__proto__`,
 * `constructor` or `prototype`.
 */
export function requireStorableUnknownFields<Payload extends object>(
  knownNamesIn: (payload: PlainObject) => ReadonlySet<string>,
) {
  return v.rawCheck<Payload>(({ dataset, addIssue }) => {
    const payload: unknown = dataset.value;
    if (!isPlainObject(payload)) return;
    if (countJsonValues(payload) > maxJsonValues) return addIssue({ message: tooManyValues.message });
    for (const { message, propertyPath } of checkUnknownFields(payload, knownNamesIn(payload))) {
      const [name = "", ...rest] = propertyPath;
      addIssue({ message, path: [toPathItem(payload, name), ...rest.map((key) => toPathItem(payload[name], key))] });
    }
  });
}

interface Search {
  violations: Violation[];
  /** The path to the value being checked. The value has as many levels around it as the path has names. */
  path: string[];
  /** The number of values found so far: the containers and their direct members. */
  valueCount: number;
  /** Of the numbers that do not have too many digits themselves. */
  digitCount: number;
}

function checkField(search: Search, name: string, value: unknown): void {
  if (search.violations.length >= maxViolations || search.valueCount > maxJsonValues) return;
  search.path.push(name);
  checkValue(search, value);
  search.path.pop();
}

/** Recursive; the nesting limit also bounds the stack. */
function checkValue(search: Search, value: unknown): void {
  if (isJsonNumber(value)) {
    checkDigits(search, value);
  } else if (Array.isArray(value) || isPlainObject(value)) {
    if (search.path.length < maxNestingLevels) checkItems(search, value);
    else report(search, "too-deep", tooDeepMessage);
  } else if (value !== null && typeof value !== "boolean" && typeof value !== "string") {
    report(search, "not-json", notJsonMessage);
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
    if (value[name] !== undefined) checkField(search, name, value[name]);
  }
}

function checkDigits(search: Search, value: number | ExactNumber): void {
  const { before, after } = countDigits(value);
  if (before + after > maxDigits) {
    report(search, "too-many-digits", tooManyDigitsMessage);
    return;
  }
  const isFirstBeyond = search.digitCount <= maxDigitsInPayload;
  search.digitCount += before + after;
  if (isFirstBeyond && search.digitCount > maxDigitsInPayload) search.violations.push(tooManyDigitsInPayload);
}

function report({ violations, path }: Search, code: ViolationCode, message: string): void {
  violations.push({ message, code, propertyPath: path.map(shortenName) });
}

function toPathItem(input: unknown, key: string): v.UnknownPathItem {
  return { type: "unknown", origin: "value", input, key, value: undefined };
}
