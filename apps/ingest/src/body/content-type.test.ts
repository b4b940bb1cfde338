import { expect, test } from "vitest";
import { bodyTypeOf } from "./content-type.ts";

test.each([
  "application/json",
  "Application/JSON",
  "application/json;charset=utf-8",
  "application/json; charset=UTF-8",
  'application/json; charset="utf-8"',
  "application/json ; Charset=utf8",
  "application/json;",
  "application/json ; ; charset=utf-8 ;",
  'application/json; profile="a;b\\"; charset=latin1"',
  'application/json; charset="\\u\\tf-8"',
  'application/json; note="caf\u00e9"; x=""',
  "application/json;\tcharset=utf-8",
  "application/json; __proto__=1",
  'application/json; profile="https://example.com/x"; charset=utf-8',
])("%s is JSON", (contentType) => expect(bodyTypeOf(contentType)).toBe("json"));

test.each([
  "application/x-www-form-urlencoded",
  "APPLICATION/X-WWW-FORM-URLENCODED; CHARSET=UTF-8",
  "application/x-www-form-urlencoded;charset=utf-8",
])("%s is a form", (contentType) => expect(bodyTypeOf(contentType)).toBe("form"));

test.each([
  undefined,
  "",
  "json",
  "text/json",
  "text/plain",
  "application/jsonp",
  "application/ld+json",
  "application/vnd.acme+json",
  "application/x-www-form-url",
  "multipart/form-data; boundary=x",
  "application/json, application/json",
  "application/json; charset=iso-8859-1",
  "application/json; charset=utf-16",
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
  "application/x-www-form-urlencoded; charset=windows-1252",
])("%s is neither", (contentType) => expect(bodyTypeOf(contentType)).toBeUndefined());
