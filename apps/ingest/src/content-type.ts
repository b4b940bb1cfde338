/**
 * Tells which of the two accepted types a Content-Type header names; undefined: neither, or not in UTF-8.
 *
 * Charset is the only parameter with a meaning here. Others are ignored, since neither type defines any: refusing
 * `application/json; profile=…` would help nobody.
 */
export function bodyTypeOf(contentType: string | undefined): "json" | "form" | undefined {
  if (contentType === "application/json") return "json";
  const [type = "", ...parameters] = (contentType ?? "").split(";").map((part) => part.trim());
  if (!parameters.every(isAcceptable)) return undefined;
  switch (type.toLowerCase()) {
    case "application/json":
      return "json";
    case "application/x-www-form-urlencoded":
      return "form";
    default:
      return undefined;
  }
}

const parameterPattern = /^([^\s="]+)=(?:"([^"]*)"|([^\s"]*))$/;

function isAcceptable(parameter: string): boolean {
  // RFC 9110 allows a semicolon with nothing after it.
  if (parameter === "") return true;
  const [, name, quoted, bare] = parameterPattern.exec(parameter) ?? [];
  if (name === undefined) return false;
  return name.toLowerCase() !== "charset" || /^utf-?8$/i.test(quoted ?? bare ?? "");
}
