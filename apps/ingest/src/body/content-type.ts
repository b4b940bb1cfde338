/** RFC 9110, sections 5.6.2 and 5.6.4. Node decodes header bytes as Latin-1. */
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const quotedString = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"';

const typePattern = new RegExp(`^(${token}/${token})[ \\t]*`);
/** The parameter after a semicolon is optional. */
const parameterPattern = new RegExp(`;[ \\t]*(?:(${token})=(${token}|${quotedString}))?[ \\t]*`, "y");

/**
 * Returns which of the two accepted types a Content-Type header names, or undefined if it names neither, is malformed,
 * or has a charset other than UTF-8.
 *
 * Charset is the only parameter that matters here. Others are ignored because neither type defines any, and refusing
 * `application/json; profile=…` would help nobody.
 */
export function bodyTypeOf(contentType: string | undefined): "json" | "form" | undefined {
  if (contentType === undefined) return undefined;
  if (contentType === "application/json") return "json";
  if (contentType === "application/x-www-form-urlencoded") return "form";
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
