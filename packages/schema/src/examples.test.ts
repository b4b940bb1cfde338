import { readdirSync, readFileSync } from "node:fs";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import {
  bookingFields,
  eventKinds,
  findWarnings,
  parseJson,
  toCanonicalJson,
  Violation,
  validatePayload,
  Warning,
  warningCodes,
} from "./index.ts";

const directory = new URL("../examples/", import.meta.url);

const Example = v.pipe(
  v.strictObject({
    description: v.pipe(v.string(), v.nonEmpty()),
    kind: v.picklist(eventKinds),
    contentType: v.optional(v.picklist(["application/json", "application/x-www-form-urlencoded"])),
    body: v.optional(v.string()),
    payload: v.custom<Record<string, unknown>>((payload) => typeof payload === "object" && payload !== null),
    beyondJsonSchema: v.optional(v.literal(true)),
    expect: v.union([
      v.strictObject({
        valid: v.literal(true),
        warnings: v.exactOptional(v.pipe(v.array(v.strictObject(Warning.entries)), v.nonEmpty())),
      }),
      v.strictObject({
        violationList: v.pipe(v.array(v.strictObject(Violation.entries)), v.nonEmpty()),
      }),
    ]),
  }),
  v.check(({ body, contentType }) => (body === undefined) === (contentType === undefined), "a body has a type"),
);

const examples = readdirSync(directory).map((fileName) => {
  const example = v.parse(Example, parseJson(readFileSync(new URL(fileName, directory), "utf8")));
  return { fileName, ...example };
});

/** Warnings of how a request was written, and one that takes many events. */
const needsMore = new Set(["wrong-content-type", "unstorable-text", "empty-key", "perhaps-the-day-before"]);

describe("examples", () => {
  test.each(examples)(
    "$fileName: the validator's result is the expected one",
    ({ fileName, kind, payload, expect: expected }) => {
      const before = toCanonicalJson(payload);

      const result = validatePayload(kind, payload);

      if ("valid" in expected) expect(result).toEqual({ success: true, payload });
      else expect(result).toEqual({ success: false, violationList: expected.violationList });
      expect(toCanonicalJson(payload)).toBe(before);
      expect(fileName.startsWith("invalid-")).toBe("violationList" in expected);
    },
  );

  test.each(examples.filter(({ expect: expected }) => "valid" in expected))(
    "$fileName: has the expected warnings and no other",
    ({ kind, payload, expect: expected }) => {
      const warnings = findWarnings(kind, payload).map(({ field, ...warning }) => warning);

      expect(warnings).toEqual("valid" in expected ? (expected.warnings ?? []) : []);
    },
  );

  test.each(examples)("$fileName: the body decodes to the payload", ({ contentType, body, payload }) => {
    const received =
      contentType === "application/x-www-form-urlencoded"
        ? Object.fromEntries(new URLSearchParams(body))
        : parseJson(body ?? JSON.stringify(payload));

    expect(received).toStrictEqual(payload);
  });

  test("every warning that a payload alone can get has an example", () => {
    const shown = examples.flatMap(({ expect }) => ("valid" in expect ? (expect.warnings ?? []) : []));

    expect(new Set(shown.map(({ code }) => code))).toEqual(
      new Set(warningCodes.filter((code) => !needsMore.has(code))),
    );
  });

  test("the full booking has every listed field, in order", () => {
    const full = examples.find(({ fileName }) => fileName === "full-booking.json");

    expect(Object.keys(full?.payload ?? {})).toEqual(bookingFields.map(({ name }) => name));
  });
});
