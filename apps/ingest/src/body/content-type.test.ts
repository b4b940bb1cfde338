import { expect, test } from "vitest";
import { readContentType } from "./content-type.ts";

test.each([
  "application/json",
  "Application/JSON",
  "application/json;charset=utf-8",
  "application/json; charset=UTF-8",
  'application/json; charset="utf-8"',
  "application/json ; Charset=utf8",
  "application/json;",
  "application/json ; ; charset=utf-8 ;",
  'application/json; profile="a;b\\"; charset=latin9"',
  'application/json; charset="\\u\\tf-8"',
  'application/json; note="caf\u00e9"; x=""',
  "application/json;\tcharset=utf-8",
  "application/json; __proto__=1",
  'application/json; profile="https://example.com/x"; charset=utf-8',
  "text/json",
  "application/ld+json",
  "application/vnd.acme+JSON; charset=utf-8",
])("%s is JSON", (contentType) => expect(readContentType(contentType)?.format).toBe("json"));

test.each([
  "application/x-www-form-urlencoded",
  "APPLICATION/X-WWW-FORM-URLENCODED; CHARSET=UTF-8",
  "application/x-www-form-urlencoded;charset=utf-8",
])("%s is a form", (contentType) => expect(readContentType(contentType)?.format).toBe("form"));

test.each([undefined, "", "text/plain", "Text/Plain;charset=UTF-8"])(
  "%s says nothing about the format",
  (contentType) => expect(readContentType(contentType)?.format).toBe("unknown"),
);

test.each([
  ["application/json", undefined],
  ["application/json; profile=x", undefined],
  ['application/json; charset="UTF-8"', "utf-8"],
  ["application/json; charset=utf8; charset=utf-8", "utf-8"],
  ["application/json; charset=us-ascii", "utf-8"],
  ["text/plain; charset=ISO-8859-1", "windows-1252"],
  ["application/x-www-form-urlencoded; charset=latin1", "windows-1252"],
  ["application/json; charset=Windows-1252", "windows-1252"],
  ["application/json; charset=cp1252", "windows-1252"],
  ["application/json; charset=utf-16", "utf-16"],
  ["application/json; charset=UTF-16LE", "utf-16le"],
  ["application/json; charset=utf-16be", "utf-16be"],
])("the charset of %s is %s", (contentType, charset) => expect(readContentType(contentType)?.charset).toBe(charset));

test.each([
  "json",
  ";",
  "text/html",
  "application/jsonp",
  "application/json+xml",
  "application/x-www-form-url",
  "multipart/form-data; boundary=x",
  "application/json, application/json",
  "application/json; charset=iso-8859-2",
  "application/json; charset=utf-32",
  'application/json; charset="utf-8',
  'application/json; charset="utf-8"x',
  'application/json; charset="utf-8\\"',
  "application/json; charset =utf-8",
  "application/json; charset= utf-8",
  "application/json; profile=a b",
  "application/json; profile=https://example.com/x",
  "application/json charset=utf-8",
  "application /json",
  "; charset=utf-8",
  "application/json; pro file=x",
  "application/json; charset='utf-8'",
  "application/json; charset=",
  "application/json; charset",
  "application/json; charset=utf-8; charset=latin1",
  "application/x-www-form-urlencoded; charset=shift_jis",
])("%s can't be read", (contentType) => expect(readContentType(contentType)).toBeUndefined());
