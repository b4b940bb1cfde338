import { expect, test } from "vitest";
import { decodeFormFields, decodeUtf8 } from "./decode-exactly.ts";

test.each<[what: string, bytes: number[]]>([
  ["a byte of Latin-1", [0x5a, 0xeb]],
  ["an overlong form", [0xc0, 0xaf]],
  ["a surrogate", [0xed, 0xa0, 0x80]],
  ["a character that is cut off", [0xe2, 0x82]],
])("%s is not UTF-8, as bytes or as escapes", (_what, bytes) => {
  expect(decodeUtf8(Uint8Array.from(bytes))).toBeUndefined();
  const escapes = bytes.map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  expect(decodeFormFields(`reference=${escapes}`)).toBeUndefined();
  expect(decodeFormFields(`${escapes}=1`)).toBeUndefined();
});

test("UTF-8 is decoded as it is, with its byte order mark", () => {
  expect(decodeUtf8(new TextEncoder().encode("\ufeffZoë �"))).toBe("\ufeffZoë �");
});

test("fields keep their order and their repetitions", () => {
  expect(decodeFormFields("a=1+%2B&b&&a=%C3%AB=&=x&%EF%BF%BD=")).toEqual([
    ["a", "1 +"],
    ["b", ""],
    ["a", "ë="],
    ["", "x"],
    ["�", ""],
  ]);
  expect(decodeFormFields("")).toEqual([]);
});

test.each(["a=%", "a=%4", "a=%zz", "%=1"])("%s has a malformed escape", (text) => {
  expect(decodeFormFields(text)).toBeUndefined();
});
