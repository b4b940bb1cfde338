import { countJsonValues, maxJsonValues } from "@booking-events/schema";
import fc from "fast-check";
import { expect, test } from "vitest";
import { hasTooManyValues } from "./has-too-many-values.ts";

const judge = (json: string) => hasTooManyValues(Buffer.from(json));

test.each([
  ["names", (count: number) => `{${Array.from({ length: count - 1 }, (_, index) => `"f${index}" : 0`).join(" , ")}}`],
  [
    "items",
    (count: number) =>
      `{"a":[${Array(count - 2)
        .fill("0")
        .join(",")}]}`,
  ],
  [
    "empty objects",
    (count: number) =>
      `{"a":[${Array(count - 2)
        .fill("{}")
        .join(",")}]}`,
  ],
  ["levels", (count: number) => `{"a":${"[".repeat(count - 1)}${"]".repeat(count - 1)}}`],
])("too many are seen, and no fewer: %s", (_, write) => {
  expect(countJsonValues(JSON.parse(write(maxJsonValues)))).toBe(maxJsonValues);
  expect(judge(write(maxJsonValues))).toBe(false);
  expect(judge(write(maxJsonValues + 2))).toBe(true);
});

test.each([
  ["commas and brackets in texts", { a: ",[{".repeat(30_000), "b,[": '"\\,'.repeat(9_000) }],
  ["a few values in a long text", { a: ["\\", '"', "\\\\"], b: "é,".repeat(9_000) }],
])("%s are none", (_, payload) => {
  for (const indent of [0, 2]) expect(judge(JSON.stringify(payload, null, indent))).toBe(false);
});

test("what is said to have too many values has them", () => {
  let found = 0;
  const item = fc.constantFrom('"\\",["', "{}", "[]", "[[0]]", '{"a":{"b":","}}', "1e5", "null");
  fc.assert(
    fc.property(
      fc.array(item, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 200, max: 1_500 }),
      (items, times) => {
        const json = `{"a":[${Array(times).fill(items.join(" ,")).join(",")}]}`;
        if (!judge(json)) return;
        found += 1;
        expect(countJsonValues(JSON.parse(json))).toBeGreaterThan(maxJsonValues);
      },
    ),
  );
  expect(found).toBeGreaterThan(10);
});
