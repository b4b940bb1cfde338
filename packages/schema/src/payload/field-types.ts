import * as v from "valibot";
import { ExactNumber } from "../json/exact-number.ts";
import { datePattern, maxDateLength } from "./date-pattern.ts";
import { describeDateFault } from "./describe-date-fault.ts";
import { formatCount } from "./format-count.ts";
import { isStorableText, unstorableTextMessage } from "./storable-text.ts";

/**
 * The types of a booking's fields. All are strings; the type says what the string represents. Phone numbers, flags and
 * languages are accepted in any form, because only the programs that read the booking can decide how to interpret them.
 */
export type FieldType = "text" | "phone" | "flag" | "date" | "email" | "language";

/** In Unicode code points. */
const maxTextLength = 1_024;

export const text = (maxLength = maxTextLength) => v.exactOptional(textOf("text", maxLength));
export const reference = (maxLength = maxTextLength) => v.exactOptional(referenceText(maxLength));
export const textOrNull = () => v.exactOptional(v.nullable(textOf("text", maxTextLength, orNull)));
export const phone = () => v.exactOptional(textOf("phone", maxTextLength));
export const flag = () => v.exactOptional(textOf("flag", maxTextLength));
export const languageOrNull = () => v.exactOptional(v.nullable(textOf("language", maxTextLength, orNull)));
export const email = () => v.exactOptional(emailAddress());
export const emailOrNull = () => v.exactOptional(v.nullable(emailAddress(orNull)));
export const date = () => v.exactOptional(dateOrDateTime());

const timestampHint = "Send the date as a string. Unix timestamps are not supported.";
const orNull = ", or null";

function textOf<Type extends FieldType>(type: Type, maxLength: number, alternative = "") {
  const message = describeViolation(`Must be a string of 1 to ${formatCount(maxLength)} characters${alternative}`);
  return v.pipe(
    v.string(message),
    v.nonEmpty(message),
    v.maxCodePoints(maxLength, message),
    v.check(isStorableText, unstorableTextMessage),
    v.metadata({ type, maxLength }),
  );
}

/** `\s` matches the same characters that `String.prototype.trim` removes. */
function referenceText(maxLength: number) {
  return v.pipe(
    textOf("text", maxLength),
    v.regex(/\S/, "Must not be only white space, because it identifies the booking."),
  );
}

/** Uses valibot's `rfcEmail`, because its `email` refuses apostrophes: o'brien@example.com. */
function emailAddress(alternative = "") {
  const limit = formatCount(maxTextLength);
  const message = describeViolation(
    `Must be an e-mail address such as name@example.com, of at most ${limit} characters${alternative}`,
  );
  return v.pipe(
    v.string(message),
    v.nonEmpty(message),
    v.maxCodePoints(maxTextLength, message),
    v.rfcEmail(message),
    v.metadata({ type: "email" as const, maxLength: maxTextLength }),
  );
}

function dateOrDateTime() {
  const rule =
    "Must be a date such as 2026-06-14, or a date-time with a time zone such as 2026-06-14T07:27:17Z or " +
    "2026-06-14T07:27:17+02:00, between the years 1900 and 2999";
  const describeTypeViolation = describeViolation(rule);
  const message = (issue: v.BaseIssue<unknown>) => {
    const { input } = issue;
    // A quoted timestamp would still not be a date, so this does not suggest quotes.
    if (isNumber(input)) return `${rule}; got a number. ${timestampHint}`;
    return typeof input === "string" && input !== ""
      ? `${rule}; got ${describeDateFault(input)}.`
      : describeTypeViolation(issue);
  };
  return v.pipe(
    v.string(message),
    v.regex(datePattern, message),
    v.metadata({ type: "date" as const, maxLength: maxDateLength }),
  );
}

function describeViolation(rule: string): (issue: v.BaseIssue<unknown>) => string {
  return (issue) => `${rule}; got ${describeReceived(issue)}.${suggest(issue.input)}`;
}

/** Names the type of the received value, never the value itself. */
function describeReceived({ input, type }: v.BaseIssue<unknown>): string {
  if (input === null) return "null";
  if (input === "") return "an empty string";
  if (typeof input === "string") return type === "max_code_points" ? "a longer string" : "a string in another format";
  if (isNumber(input)) return "a number";
  if (Array.isArray(input)) return "an array";
  if (typeof input === "object") return "an object";
  return typeof input === "undefined" ? "undefined" : `a ${typeof input}`;
}

function suggest(input: unknown): string {
  if (input === null || input === undefined || input === "") return " Omit the field if you have no value.";
  return isNumber(input) || typeof input === "boolean" ? " Put it in quotes." : "";
}

function isNumber(input: unknown): boolean {
  return typeof input === "number" || input instanceof ExactNumber;
}
