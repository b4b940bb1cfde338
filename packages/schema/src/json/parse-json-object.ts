import { isCompactJson, isLossless } from "./lossless-json.ts";
import { mayHaveEscapedName } from "./parse-json.ts";
import { JsonError, parseJsonExactly } from "./parse-json-exactly.ts";

/**
 * Parses a text that must be one JSON object without duplicate keys at any level. The object may have an own property
 * named `__proto__`. A number that loses digits as a double becomes an `ExactNumber`.
 *
 * @throws JsonError
 */
export function parseJsonObject(text: string): Record<string, unknown> {
  return readJsonObject(text).object;
}

/**
 * Parses as {@link parseJsonObject}.
 *
 * @param text without unpaired surrogates, as a text from well-formed UTF-8 is
 * @returns the object, and whether the text is what `JSON.stringify` writes for it, without any escape. Only names that
 *   are integers may have another place. Then no text in the object contains U+0000 or an unpaired surrogate
 * @throws JsonError
 */
export function readJsonObject(text: string): { object: Record<string, unknown>; isCompact: boolean } {
  if (mayHaveEscapedName(text)) return { object: parseObjectExactly(text), isCompact: false };
  const object = parseObject(text);
  // Nothing is lost in a compact text.
  if (isCompactJson(text, object)) return { object, isCompact: true };
  return { object: isLossless(text, object) ? object : parseObjectExactly(text), isCompact: false };
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // V8's message quotes the text, and does not always state the position.
    return parseObjectExactly(text);
  }
  return toObject(value, text);
}

function parseObjectExactly(text: string): Record<string, unknown> {
  return toObject(parseJsonExactly(text), text);
}

function toObject(value: unknown, text: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new JsonError("not-an-object", text, 0);
  return value as Record<string, unknown>;
}
