import { isLossless } from "./lossless-json.ts";
import { JsonError, parseJsonExactly } from "./parse-json-exactly.ts";

/**
 * Parses a text that must be one JSON object without duplicate keys at any level. The object may have an own property
 * named `__proto__`. A number that loses digits as a double becomes NaN, which `validatePayload` refuses.
 *
 * @throws JsonError
 */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new JsonError("not-an-object", text, 0);
  const object = value as Record<string, unknown>;
  return isLossless(text, object) ? object : (parseJsonExactly(text) as Record<string, unknown>);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // V8's message quotes the text, and does not always state the position.
    return parseJsonExactly(text);
  }
}
