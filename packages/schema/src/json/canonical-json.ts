import { ExactNumber, toCanonicalNumber } from "./exact-number.ts";

/**
 * Writes a value as `JSON.stringify` does, but in canonical form (RFC 8785), with all digits of numbers.
 *
 * The names of each object are sorted by their UTF-16 code units, as `<` compares them. The result of `JSON.stringify` is
 * not parsed and sorted instead, since V8 may read escaped names wrongly (https://github.com/nodejs/node/issues/63785).
 *
 * @param toStored what a name becomes before the names are sorted
 * @returns undefined for what JSON leaves out
 */
export function toCanonicalJson(sent: unknown, toStored?: (name: string) => string): string | undefined {
  if (typeof sent === "number" || sent instanceof ExactNumber) return toCanonicalNumber(sent);
  // Once, as JSON.stringify does: the result may have the method too.
  const value = hasToJson(sent) ? sent.toJSON() : sent;
  if (Array.isArray(value)) return `[${value.map((item) => toCanonicalJson(item, toStored) ?? "null").join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const names = Object.keys(value).sort(
    toStored === undefined ? byCodeUnits : (one, other) => byCodeUnits(toStored(one), toStored(other)),
  );
  const members = names.flatMap((name) => {
    const json = toCanonicalJson((value as Record<string, unknown>)[name], toStored);
    return json === undefined ? [] : `${JSON.stringify(name)}:${json}`;
  });
  return `{${members.join(",")}}`;
}

function byCodeUnits(one: string, other: string): number {
  return one < other ? -1 : 1;
}

function hasToJson(value: unknown): value is { toJSON: () => unknown } {
  return typeof (value as { toJSON?: unknown } | null | undefined)?.toJSON === "function";
}
