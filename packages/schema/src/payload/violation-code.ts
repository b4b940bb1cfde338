import type * as v from "valibot";
import { ExactNumber } from "../json/exact-number.ts";
import { isStorableText } from "./storable-text.ts";
import type { ViolationCode } from "./violation.ts";

/** Returns what is wrong with the value of a listed field, which violates its rules. */
export function codeOfField(value: unknown, issues: readonly Pick<v.BaseIssue<unknown>, "type">[]): ViolationCode {
  const types = new Set(issues.map(({ type }) => type));
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "string") return codeOfText(value, types.has("max_code_points"));
  if (typeof value === "number" || value instanceof ExactNumber) return "number";
  if (typeof value === "boolean") return "boolean";
  return typeof value === "object" ? "object" : "not-json";
}

function codeOfText(text: string, isTooLong: boolean): ViolationCode {
  if (!isStorableText(text)) return "unstorable";
  return isTooLong ? "too-long" : "malformed";
}
