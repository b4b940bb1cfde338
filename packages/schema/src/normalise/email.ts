import * as v from "valibot";
import { cleanReference } from "../payload/clean-reference.ts";

/**
 * Reads the one e-mail address in a text: `ada@example.com`, `Ada <ada@example.com>`, `Ada ada@example.com`,
 * `mailto:ada@example.com`. White space and characters that nobody sees are read away. Domains and local parts may be internationalised.
 *
 * @returns the address with its domain in lower case; undefined if there is none, or more than one
 */
export function readEmail(sent: string): string | undefined {
  if (sent.length <= maxEmailLength && v.RFC_EMAIL_REGEX.test(sent)) return lowerDomain(sent);
  const visible = cleanReference(sent);
  if (visible.length > maxEmailLength) return undefined;
  const text = withoutSeparators(toNarrow(visible));
  const { name = "", address = text } = named.exec(text)?.groups ?? {};
  const email = readAddress(address) ?? readAddress(withoutName(text));
  return email !== undefined && hasOtherAddress(name, email) ? undefined : email;
}

/** In UTF-16 code units, with a name and all around it. An address that mail servers accept has at most 254 bytes. */
const maxEmailLength = 1_024;

/** A name with the characters of an address is in double quotes. */
const named = /^(?<name>(?:"(?:[^"\\]|\\.)*"|[^"<>])*)<(?<address>[^<>]*)>$/su;
const quotedText = /"(?:[^"\\]|\\.)*"/gsu;

/**
 * Removes a name that stands before the address without brackets. A text that begins with a small letter is rather an
 * address with a blank in it.
 */
function withoutName(text: string): string {
  return nameBefore.exec(text)?.[1] ?? "";
}

const nameBefore = /^[^\p{Ll}@"<>][^@"<>]*\s(\S+)$/u;

/** Full-width characters, as Chinese and Japanese keyboards write them. */
function toNarrow(text: string): string {
  return text
    .replace(/[\uff01-\uff5e]/g, (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0))
    .replace(/[\u3002\uff61]/g, ".");
}

/** Mail programs end a list of one address with a separator. */
function withoutSeparators(text: string): string {
  return text.replace(/^[,;\s]+/, "").replace(/(?<![,;\s])[,;\s]+$/, "");
}

/** Outlook repeats the address as its name. */
function hasOtherAddress(name: string, email: string): boolean {
  const words = name.includes("@") ? name.replace(quotedText, " ").split(/[\s,;]+/) : [];
  return words.some((word) => {
    const other = word.includes("@") ? readAddress(word) : undefined;
    return other !== undefined && other.toLowerCase() !== email.toLowerCase();
  });
}

function readAddress(text: string): string | undefined {
  const address = withoutScheme(withoutQuotes(withoutComment(text.trim())));
  return addressPattern.test(address) ? lowerDomain(address) : undefined;
}

/** `ada@example.com (Ada)` is the form before 2001, which some programs still write. */
function withoutComment(text: string): string {
  const start = text.endsWith(")") ? text.indexOf("(") : -1;
  return start === -1 ? text : text.slice(0, start).trimEnd();
}

/** Removes quotes around the whole address. Behind a quoted local part comes the domain. */
function withoutQuotes(text: string): string {
  const quote = text.at(0);
  const isQuoted = text.length > 2 && (quote === '"' || quote === "'") && text.endsWith(quote);
  return isQuoted ? text.slice(1, -1).trim() : text;
}

function withoutScheme(text: string): string {
  const [scheme] = /^mailto:(?:\/\/)?/i.exec(text) ?? [];
  if (scheme === undefined) return text;
  const address = text.slice(scheme.length).replace(/(?<=@[^?]*)\?.*$/s, "");
  try {
    return decodeURIComponent(address).trim();
  } catch {
    return address.trim();
  }
}

/** White space, controls, and U+FFFD, which stands for a character that was lost. */
const never = "\\s\\p{Z}\\p{Cc}\\p{Cs}\\ufffd";
const localPart = `(?:[^${never}"(),:;<>@[\\\\\\]]+|"(?:[^\\p{Cc}\\p{Cs}\\ufffd"\\\\]|\\\\[ -~])+")`;
const letter = `(?:[A-Za-z0-9]|[^\\0-\\x7f${never}])`;
const label = `${letter}(?:(?:-|${letter}){0,61}${letter})?`;
const literal = "\\[(?:IPv6:)?[0-9A-Fa-f.:]{3,45}\\]";
const addressPattern = new RegExp(`^${localPart}@(?:${label}(?:\\.${label})*\\.?|${literal})$`, "u");

function lowerDomain(address: string): string {
  const at = address.lastIndexOf("@");
  return `${address.slice(0, at)}@${address
    .slice(at + 1)
    .replace(/\.$/, "")
    .toLowerCase()}`;
}
