import * as v from "valibot";
import { datePattern, maxDateLength } from "./date-pattern.ts";
import { describeDateFault } from "./describe-date-fault.ts";
import { isStorableText, unstorableTextMessage } from "./storable-text.ts";

/**
 * The types that a booking's fields have. All are strings; the type says what the string stands for. A phone number, a
 * flag or a language in an unusual form is accepted: only what reads the booking later can say what it makes of it.
 */
export type FieldType = "text" | "phone" | "flag" | "date" | "email" | "language";

/** In characters, that is, Unicode code points. */
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

const noEpochTime = "Write the date out, as a string; an epoch time is not read.";
const orNull = ", or null";

function textOf<Type extends FieldType>(type: Type, maxLength: number, alternative = "") {
  const message = sayRule(`Must be a string of 1 to ${maxLength.toLocaleString("en")} characters${alternative}`);
  return v.pipe(
    v.string(message),
    v.nonEmpty(message),
    v.maxCodePoints(maxLength, message),
    v.check(isStorableText, unstorableTextMessage),
    v.metadata({ type, maxLength }),
  );
}

/** White space is what `String.prototype.trim` removes: `\s` stands for the same characters. */
function referenceText(maxLength: number) {
  return v.pipe(
    textOf("text", maxLength),
    v.regex(/\S/, "Must hold more than white space: it says which booking is meant."),
  );
}

/** valibot's `rfcEmail`, since its `email` refuses apostrophes: o'brien@example.com. */
function emailAddress(alternative = "") {
  const limit = maxTextLength.toLocaleString("en");
  const message = sayRule(
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
    "Must be a date such as 2026-06-14, or a date-time with its zone such as 2026-06-14T07:27:17Z or 2026-06-14T07:27:17+02:00, on a real day of the years 1900 to 2999";
  const sayTypeRule = sayRule(rule);
  const message = (issue: v.BaseIssue<unknown>) => {
    const { input } = issue;
    // To put it in quotes would not help.
    if (typeof input === "number") return `${rule}; got a number. ${noEpochTime}`;
    return typeof input === "string" && input !== "" ? `${rule}; got ${describeDateFault(input)}.` : sayTypeRule(issue);
  };
  return v.pipe(
    v.string(message),
    v.regex(datePattern, message),
    v.metadata({ type: "date" as const, maxLength: maxDateLength }),
  );
}

function sayRule(rule: string): (issue: v.BaseIssue<unknown>) => string {
  return (issue) => `${rule}; got ${describeReceived(issue)}.${suggest(issue.input)}`;
}

/** Names the type of what was sent, never the value. */
function describeReceived({ input, type }: v.BaseIssue<unknown>): string {
  if (input === null) return "null";
  if (input === "") return "an empty string";
  if (typeof input === "string") return type === "max_code_points" ? "a longer string" : "another string";
  if (Array.isArray(input)) return "an array";
  if (typeof input === "object") return "an object";
  return typeof input === "undefined" ? "undefined" : `a ${typeof input}`;
}

function suggest(input: unknown): string {
  if (input === null || input === undefined || input === "") return " Leave the field out if you have no value.";
  return typeof input === "number" || typeof input === "boolean" ? " Put it in quotes." : "";
}
