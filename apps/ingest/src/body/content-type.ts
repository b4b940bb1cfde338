import type { Charset } from "@booking-events/schema";

/** What a Content-Type header says about a body. */
export interface ContentType {
  /** Unknown: there is no header, or it only says that the body is a text. A body that looks like JSON may be JSON. */
  format: "json" | "form" | "unknown";
  /** Undefined: none is declared. */
  charset?: Charset;
}

/** RFC 9110, sections 5.6.2 and 5.6.4. Node decodes header bytes as Latin-1. */
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const quotedString = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"';

const typePattern = new RegExp(`^(${token}/${token})[ \\t]*`);
/** The parameter after a semicolon is optional. */
const parameterPattern = new RegExp(`;[ \\t]*(?:(${token})=(${token}|${quotedString}))?[ \\t]*`, "y");

const json: ContentType = { format: "json" };
const form: ContentType = { format: "form" };
const unknown: ContentType = { format: "unknown" };

/**
 * Reads a Content-Type header. An empty one counts as none.
 *
 * Charset is the only parameter that matters here. Others are ignored because no type that we read defines any, and
 * refusing `application/json; profile=…` would help nobody.
 *
 * @returns undefined: it is malformed, or names a type or charset that we can't read
 */
export function readContentType(contentType = ""): ContentType | undefined {
  if (contentType === "application/json") return json;
  if (contentType === "application/x-www-form-urlencoded") return form;
  if (contentType === "") return unknown;
  const [matched, type = ""] = typePattern.exec(contentType) ?? [];
  const { format } = formatOf(type.toLowerCase()) ?? {};
  if (matched === undefined || format === undefined) return undefined;
  const charsets = readCharsets(contentType, matched.length);
  if (charsets === undefined) return undefined;
  const [charset, ...others] = charsets;
  if (charset === undefined) return { format };
  return others.every((other) => other === charset) ? { format, charset } : undefined;
}

function formatOf(type: string): ContentType | undefined {
  if (type === "application/json" || type === "text/json" || type.endsWith("+json")) return json;
  if (type === "application/x-www-form-urlencoded") return form;
  return type === "text/plain" ? unknown : undefined;
}

/** @returns undefined: a parameter is malformed, or a charset is one that we can't read */
function readCharsets(contentType: string, from: number): Charset[] | undefined {
  const charsets: Charset[] = [];
  let at = from;
  while (at < contentType.length) {
    parameterPattern.lastIndex = at;
    const [parameter, name, value = ""] = parameterPattern.exec(contentType) ?? [];
    if (parameter === undefined) return undefined;
    if (name?.toLowerCase() === "charset") {
      const charset = charsetsByLabel.get(unquote(value).toLowerCase());
      if (charset === undefined) return undefined;
      charsets.push(charset);
    }
    at += parameter.length;
  }
  return charsets;
}

/**
 * As browsers do (https://encoding.spec.whatwg.org/#names-and-labels), `iso-8859-1` is read as windows-1252, which differs
 * only where ISO 8859-1 has control characters: many programs write one and say the other. ASCII is a part of UTF-8.
 */
const charsetsByLabel = new Map<string, Charset>([
  ["utf-8", "utf-8"],
  ["utf8", "utf-8"],
  ["us-ascii", "utf-8"],
  ["iso-8859-1", "windows-1252"],
  ["latin1", "windows-1252"],
  ["windows-1252", "windows-1252"],
  ["cp1252", "windows-1252"],
  ["utf-16", "utf-16"],
  ["utf-16le", "utf-16le"],
  ["utf-16be", "utf-16be"],
]);

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}
