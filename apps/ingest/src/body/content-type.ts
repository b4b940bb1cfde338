/** RFC 9110, section 5.6.2 and 5.6.4. Node gives a header's bytes as Latin-1. */
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const quotedString = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"';

const typePattern = new RegExp(`^(${token}/${token})[ \\t]*`);
/** A semicolon may have no parameter behind it. */
const parameterPattern = new RegExp(`;[ \\t]*(?:(${token})=(${token}|${quotedString}))?[ \\t]*`, "y");

/**
 * Tells which of the two accepted types a Content-Type header names; undefined: neither, malformed, or not in UTF-8.
 *
 * Charset is the only parameter with a meaning here. Others are ignored, since neither type defines any: refusing
 * `application/json; profile=…` would help nobody.
 */
export function bodyTypeOf(contentType: string | undefined): "json" | "form" | undefined {
  if (contentType === undefined) return undefined;
  if (contentType === "application/json") return "json";
  const [matched, type = ""] = typePattern.exec(contentType) ?? [];
  if (matched === undefined || !hasAcceptableParameters(contentType, matched.length)) return undefined;
  switch (type.toLowerCase()) {
    case "application/json":
      return "json";
    case "application/x-www-form-urlencoded":
      return "form";
    default:
      return undefined;
  }
}

function hasAcceptableParameters(contentType: string, from: number): boolean {
  let at = from;
  while (at < contentType.length) {
    parameterPattern.lastIndex = at;
    const [parameter, name, value = ""] = parameterPattern.exec(contentType) ?? [];
    if (parameter === undefined) return false;
    if (name?.toLowerCase() === "charset" && !/^utf-?8$/i.test(unquote(value))) return false;
    at += parameter.length;
  }
  return true;
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}
