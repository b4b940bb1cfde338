import * as v from "valibot";
import { describe, expect, test } from "vitest";
import {
  BookingInput,
  BookingReference,
  countJsonValues,
  eventKinds,
  maxJsonValues,
  validatePayload,
} from "../index.ts";

const reference = { consumerTripPartnerExternalReference: "booking-2001" };
const tooMany = {
  message: expect.stringContaining("at most 2,000 JSON values"),
  code: expect.any(String),
  propertyPath: [],
};

/** Makes a payload with the given number of values: itself, the reference, `extra` and its members. */
const shapes: [name: string, make: (count: number) => object][] = [
  ["numbers in one list", (count) => ({ ...reference, extra: Array(count - 3).fill(0) })],
  ["empty objects in one list", (count) => ({ ...reference, extra: Array.from({ length: count - 3 }, () => ({})) })],
  ["fields, as in a form", (count) => ({ ...reference, ...toFields(count - 2, "") })],
  ["fields of a nested object", (count) => ({ ...reference, extra: toFields(count - 3, null) })],
  ["values in lists of lists", (count) => ({ ...reference, extra: [Array(100).fill([]), Array(count - 105).fill(0)] })],
];

function toFields(count: number, value: unknown): object {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${index}`, value]));
}

describe.each(shapes)("%s", (_, make) => {
  test.each(eventKinds)("%s: the maximum is accepted", (kind) => {
    expect(countJsonValues(make(maxJsonValues))).toBe(maxJsonValues);
    expect(validatePayload(kind, make(maxJsonValues)).success).toBe(true);
  });

  test.each(eventKinds)("%s: one more is refused", (kind) => {
    expect(countJsonValues(make(maxJsonValues + 1))).toBeGreaterThan(maxJsonValues);
    expect(validatePayload(kind, make(maxJsonValues + 1))).toEqual({ success: false, violationList: [tooMany] });
  });

  test("the valibot schemas apply the same rule", () => {
    for (const schema of [BookingInput, BookingReference]) {
      expect(v.safeParse(schema, make(maxJsonValues)).success).toBe(true);
      const { issues = [] } = v.safeParse(schema, make(maxJsonValues + 1));
      expect(issues.map((issue) => [issue.message, v.getDotPath(issue)])).toEqual([[tooMany.message, null]]);
    }
  });
});

test("too many values are the only violation that is reported", () => {
  const values = Array(maxJsonValues).fill("\0");

  expect(validatePayload("create", { consumerPhone: 7, extra: values })).toMatchObject({ violationList: [tooMany] });
  expect(validatePayload("create", { ...reference, consumerPhone: values })).toMatchObject({
    violationList: [tooMany],
  });
  expect(validatePayload("create", { "": "\0", consumerPhone: [[values]] })).toMatchObject({
    violationList: [tooMany],
  });
});

test.each([
  ["a string", "text", 1],
  ["null", null, 1],
  ["an empty object", {}, 1],
  ["an object in a list in an object", { a: [{ b: 1 }] }, 4],
])("%s is counted with all that is inside it", (_, value, count) => {
  expect(countJsonValues(value)).toBe(count);
});

test("counting ends for any value", () => {
  const endless: unknown[] = [];
  endless.push(endless);
  const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));

  expect(countJsonValues(endless)).toBeGreaterThan(maxJsonValues);
  expect(countJsonValues(deep)).toBeGreaterThan(maxJsonValues);
  expect(countJsonValues({ list: Array(1_000_000).fill(0) })).toBeGreaterThan(maxJsonValues);
});
