import { expect, test } from "vitest";
import { decodeFormFields, decodeText, decodeUtf8 } from "./decode-exactly.ts";

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

test.each([
  ["a=%", "a", "%"],
  ["%=%4", "%", "%4"],
  ["a=%zz%%41%", "a", "%zz%A%"],
])("a percent sign that begins no escape stands for itself: %s", (text, name, value) => {
  expect(decodeFormFields(text)).toEqual([[name, value]]);
});

test("a text is decoded by its charset, with its byte order mark", () => {
  const bytes = (text: string) => Uint8Array.from(Array.from(text, (character) => character.charCodeAt(0)));
  expect(decodeText(bytes("Zo\xeb \x80"), "windows-1252")).toBe("Zoë €");
  expect(decodeText(bytes("\xff\xfea\0"), "utf-16")).toBe("\ufeffa");
  expect(decodeText(bytes("\xfe\xff\0a"), "utf-16")).toBe("\ufeffa");
  expect(decodeText(bytes("a\0"), "utf-16le")).toBe("a");
  expect(decodeText(bytes("\0a"), "utf-16be")).toBe("a");
});

test.each([
  ["utf-8", [0xeb]],
  ["utf-16", [0x61, 0]],
  ["utf-16le", [0x61]],
  ["utf-16le", [0, 0xd8]],
] as const)("a text that is not %s is not decoded: %j", (charset, bytes) => {
  expect(decodeText(Uint8Array.from(bytes), charset)).toBeUndefined();
});
