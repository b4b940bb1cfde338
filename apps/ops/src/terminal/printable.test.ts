import { expect, test } from "vitest";
import { printable, toJson } from "./printable.ts";

test("ordinary text is not changed", () => {
  const text = "São Miguel & Pico, 東京, O'Brien, 👩‍👩‍👧, א";
  expect(printable(text)).toBe(text);
});

test("escaped JSON has the same value, and can't control a terminal", () => {
  const value = { "\u009b2J": "a\u0000\u001b[31m\u007f\u0085\u2028\u202e\u2066b\n", nested: ["東京"] };
  const json = toJson(value);
  expect(JSON.parse(json)).toEqual(value);
  expect(json.replaceAll("\n", "")).not.toMatch(/\p{Cc}|\p{Bidi_Control}|\u2028/u);
  expect(json).toContain("東京");
});
