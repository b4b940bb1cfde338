import * as v from "valibot";
import { ExactNumber } from "../json/exact-number.ts";
import { readDate } from "../normalise/date.ts";
import { readEmail } from "../normalise/email.ts";
import { describeDateFault } from "./describe-date-fault.ts";
import { formatCount } from "./format-count.ts";
import { isBlank } from "./is-blank.ts";

/**
 * The types of a booking's fields. All are strings; the type says what the string represents. Only dates and the
 * agent's e-mail address have to be readable as what they are.
 */
export type FieldType = "text" | "phone" | "flag" | "date" | "email" | "language";

/** In Unicode code points. */
export const maxTextLength = 8_192;

export const text = (maxLength = maxTextLength) => v.optional(textOf("text", maxLength));
export const phone = () => v.optional(textOf("phone"));
export const flag = () => v.optional(textOf("flag"));
export const languageOrNull = () => v.optional(v.nullable(textOf("language", maxTextLength, orNull)));
export const email = () => v.optional(emailAddress());
export const date = () => v.optional(dateOrDateTime());
/** Any other value is kept too, and counts as none. */
export const anyText = () => v.optional(anythingAs("text"));
export const anyEmail = () => v.optional(anythingAs("email"));

const timestampHint = "Send the date as a string. Unix timestamps are not supported.";
const orNull = ", or null";

/**
 * @param maxLength of what counts in the text; the schema allows every text up to `maxTextLength`
 */
function textOf<Type extends FieldType>(type: Type, maxLength = maxTextLength, alternative = "") {
  const message = describeTextViolation(maxLength, alternative);
  return v.pipe(v.string(message), v.maxCodePoints(maxTextLength, message), v.metadata({ type, maxLength }));
}

function emailAddress() {
  const message = describeViolation("Must be one e-mail address such as name@example.com, alone or with a name");
  return v.pipe(
    v.string(message),
    v.maxCodePoints(maxTextLength, message),
    v.check(isEmailOrBlank, message),
    v.metadata({ type: "email" as const, maxLength: maxTextLength }),
  );
}

function dateOrDateTime() {
  const rule =
    "Must be a date such as 2026-06-14, or a date-time such as 2026-06-14T07:27:17Z or 2026-06-14T07:27:17+02:00, " +
    "between the years 1900 and 2999";
  const describeTypeViolation = describeViolation(rule);
  const message = (issue: v.BaseIssue<unknown>) => {
    const { input } = issue;
    // A quoted timestamp would still not be a date, so this does not suggest quotes.
    if (isNumber(input)) return `${rule}; got a number. ${timestampHint}`;
    return typeof input === "string" ? `${rule}; got ${describeDateFault(input)}.` : describeTypeViolation(issue);
  };
  return v.pipe(
    v.string(message),
    v.maxCodePoints(maxTextLength, message),
    v.check(isDateOrBlank, message),
    v.metadata({ type: "date" as const, maxLength: maxTextLength }),
  );
}

function anythingAs<Type extends FieldType>(type: Type) {
  return v.pipe(
    v.custom<string | null>(() => true),
    v.metadata({ type, maxLength: maxTextLength, acceptsAnything: true }),
  );
}

export function isDateOrBlank(text: string): boolean {
  return readDate(text) !== undefined || isBlank(text) || isTooLong(text);
}

export function isEmailOrBlank(text: string): boolean {
  return readEmail(text) !== undefined || isBlank(text) || isTooLong(text);
}

/** Such a text has an issue for its length already, and one is enough. */
function isTooLong(text: string): boolean {
  return text.length > maxTextLength && Array.from(text).length > maxTextLength;
}

export function describeTextViolation(maxLength: number, alternative = ""): (issue: Received) => string {
  return describeViolation(`Must be a string of up to ${formatCount(maxLength)} characters${alternative}`);
}

/** The part of an issue of valibot that a message is made from. */
export interface Received {
  input: unknown;
  type: string;
}

function describeViolation(rule: string): (issue: Received) => string {
  return (issue) => `${rule}; got ${describeReceived(issue)}.${suggest(issue.input)}`;
}

/** Names the type of the received value, never the value itself. */
function describeReceived({ input, type }: Received): string {
  if (input === null) return "null";
  if (typeof input === "string") return type === "max_code_points" ? "a longer string" : "a string in another format";
  if (isNumber(input)) return "a number";
  if (Array.isArray(input)) return "an array";
  if (typeof input === "object") return "an object";
  return typeof input === "undefined" ? "undefined" : `a ${typeof input}`;
}

function suggest(input: unknown): string {
  if (input === null || input === undefined) return " Omit the field if you have no value.";
  return isNumber(input) || typeof input === "boolean" ? " Put it in quotes." : "";
}

function isNumber(input: unknown): boolean {
  return typeof input === "number" || input instanceof ExactNumber;
}
