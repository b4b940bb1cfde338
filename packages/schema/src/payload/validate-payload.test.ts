import { runInNewContext } from "node:vm";
import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import * as v from "valibot";
import { afterEach, describe, expect, test } from "vitest";
import {
  BookingInput,
  BookingReference,
  bookingFields,
  bookingReferenceOf,
  eventKinds,
  maxViolations,
  referenceKindOf,
  validatePayload,
} from "../index.ts";
import { anyCharacter } from "../testing/any-character.ts";

const tripName = "consumerTripPartnerExternalReference";
const consumerName = "consumerPartnerExternalReference";
const reference = { [tripName]: "booking-2001" };
const listedNames = bookingFields.map(({ name }) => name);
const namesWithRules = bookingFields.filter((field) => !field.acceptsAnything).map(({ name }): string => name);
const retiredNames = ["consumerTripBookingDate", "consumerTripDepartureFlightAirline"];

describe("an accepted payload", () => {
  test.each(eventKinds)("%s: is returned as the same object", (kind) => {
    const payload = Object.freeze({ ...reference, loyalty: Object.freeze({ tier: "gold" }) });

    const result = validatePayload(kind, payload);

    expect(result.success && result.payload).toBe(payload);
  });

  test.each(["\0", "a\0b", "\ud800", "\udc00\ud800", "😀\ud83d"])("may have text that is replaced: %j", (text) => {
    expect(validatePayload("create", { ...reference, consumerGivenName: text, agentFamilyName: text }).success).toBe(
      true,
    );
    for (const kind of eventKinds)
      expect(validatePayload(kind, { consumerTripPartnerExternalReference: text })).toMatchObject({
        ...{ success: false, violationList: [{ code: "unstorable" }] },
      });
  });

  test.each(eventKinds)("%s: keeps fields named like members of Object.prototype", (kind) => {
    const text =
      '{"consumerTripPartnerExternalReference":"r","__proto__":{"a":1},"constructor":"b","prototype":2,"toString":null}';

    const result = validatePayload(kind, JSON.parse(text));

    expect(JSON.stringify(result.success && result.payload)).toBe(text);
  });

  test("may have no prototype", () => {
    const payload = Object.assign(Object.create(null), reference, { loyalty: Object.create(null) });

    expect(validatePayload("create", payload)).toEqual({ success: true, payload });
  });

  test("may come from another window or context", () => {
    const payload: unknown = runInNewContext(
      '({ consumerTripPartnerExternalReference: "r", loyalty: { tags: [{}] } })',
    );

    expect(validatePayload("create", payload).success).toBe(true);
  });

  test("of a delete may have listed fields with any value", () => {
    for (const name of [...listedNames, ...retiredNames].filter((name) => name !== tripName)) {
      for (const value of [null, 7, "", [], {}, "x".repeat(9_000), "no date"]) {
        expect(validatePayload("delete", { ...reference, [name]: value }).success).toBe(true);
      }
    }
  });
});

describe("the reference", () => {
  test.each(eventKinds)("%s: is required", (kind) => {
    const missing = [
      { message: expect.stringContaining(consumerName), code: expect.any(String), propertyPath: [tripName] },
    ];

    expect(validatePayload(kind, {})).toEqual({ success: false, violationList: missing });
    expect(validatePayload(kind, { consumerGivenName: "Robin" })).toEqual({ success: false, violationList: missing });
  });

  test.each(eventKinds)("%s: may be either one or both", (kind) => {
    expect(validatePayload(kind, { [tripName]: "t" }).success).toBe(true);
    expect(validatePayload(kind, { [consumerName]: "c" }).success).toBe(true);
    expect(validatePayload(kind, { [tripName]: "t", [consumerName]: "c" }).success).toBe(true);
  });

  const wrong = (name: string, code: string) => ({
    success: false,
    violationList: [{ message: expect.stringContaining("; got "), code, propertyPath: [name] }],
  });

  test.each(eventKinds)("%s: of a wrong type is one violation, whatever the other one is", (kind) => {
    for (const [value, code] of [
      [null, "null"],
      [7, "number"],
      [true, "boolean"],
      [[], "array"],
      [{}, "object"],
    ] as const) {
      expect(validatePayload(kind, { [tripName]: value })).toEqual(wrong(tripName, code));
      expect(validatePayload(kind, { [tripName]: value, [consumerName]: "c" })).toEqual(wrong(tripName, code));
      expect(validatePayload(kind, { [consumerName]: value })).toEqual(wrong(consumerName, code));
      expect(validatePayload(kind, { [tripName]: " ", [consumerName]: value })).toEqual(wrong(consumerName, code));
    }
  });

  test.each(eventKinds)("%s: an empty or blank trip reference counts as missing", (kind) => {
    for (const blank of ["", " ", "\u00a0\r\n", "\u200b", "\ufeff", " \u00ad\u2060\t"]) {
      expect(validatePayload(kind, { [tripName]: blank, [consumerName]: "c" }).success).toBe(true);
      expect(validatePayload(kind, { [tripName]: blank, [consumerName]: blank })).toMatchObject({
        violationList: [{ code: "missing", propertyPath: [tripName] }],
      });
    }
  });

  test.each(eventKinds)("%s: has a limit after cleaning", (kind) => {
    const longest = "x".repeat(255);
    expect(validatePayload(kind, { [tripName]: `${longest} \u200b` }).success).toBe(true);
    expect(validatePayload(kind, { [tripName]: "e\u0301".repeat(255) }).success).toBe(true);
    expect(validatePayload(kind, { [tripName]: "😀".repeat(255) }).success).toBe(true);
    expect(validatePayload(kind, { [tripName]: `${longest}x`, [consumerName]: "c" })).toEqual(
      wrong(tripName, "too-long"),
    );
    expect(validatePayload(kind, { [tripName]: `T${" ".repeat(8_192)}` })).toEqual(wrong(tripName, "too-long"));
    expect(validatePayload(kind, { [consumerName]: "😀".repeat(8_192) }).success).toBe(true);
    expect(validatePayload(kind, { [consumerName]: "x".repeat(8_193) })).toEqual(wrong(consumerName, "too-long"));
  });

  test.each(eventKinds)("%s: that identifies the booking can be stored", (kind) => {
    for (const text of ["T\0", "T\ud800"]) {
      const unstorable = (name: string) => ({ violationList: [{ code: "unstorable", propertyPath: [name] }] });
      expect(validatePayload(kind, { [tripName]: text, [consumerName]: "c" })).toMatchObject(unstorable(tripName));
      expect(validatePayload(kind, { [consumerName]: text })).toMatchObject(unstorable(consumerName));
    }
  });

  test("is the cleaned trip reference, or the cleaned consumer reference if there is none", () => {
    expect(bookingReferenceOf({ [tripName]: "t", [consumerName]: "c" })).toBe("t");
    expect(bookingReferenceOf({ [tripName]: " S\u00a09\u200b\r\n" })).toBe("S 9");
    expect(bookingReferenceOf({ [consumerName]: "u\u0308" })).toBe("ü");
    expect(bookingReferenceOf({ [tripName]: " ", [consumerName]: "c" })).toBe("c");
    expect(() => bookingReferenceOf({})).toThrow(TypeError);
    expect(() => bookingReferenceOf({ [tripName]: "\u200b" })).toThrow(TypeError);

    expect(referenceKindOf({ [tripName]: "t", [consumerName]: "c" })).toBe("trip");
    expect(referenceKindOf({ [tripName]: "\u200b", [consumerName]: "c" })).toBe("consumer");
    expect(referenceKindOf({ [consumerName]: "c" })).toBe("consumer");
  });
});

describe("the list of violations", () => {
  test("has listed fields in the contract's order, then others in the order sent", () => {
    const names = ["zebra", ...retiredNames.toReversed(), ...listedNames.toReversed(), "apple"];

    const result = validatePayload("create", Object.fromEntries(names.map((name) => [name, Number.NaN])));

    const paths = result.success ? [] : result.violationList.map(({ propertyPath }) => propertyPath);
    const others = names.filter((name) => !namesWithRules.includes(name));
    expect(paths).toEqual([...namesWithRules, ...others].map((name) => [name]));
  });

  test("lists a missing reference at its field's position", () => {
    const result = validatePayload("create", { agentEmail: null, consumerLanguage: 7, consumerGivenName: null });

    const paths = result.success ? [] : result.violationList.map(({ propertyPath }) => propertyPath);
    expect(paths).toEqual([["consumerGivenName"], ["agentEmail"], ["consumerLanguage"], [tripName]]);
  });

  test("has at most maxViolations, listed fields first", () => {
    const unlisted = Array.from({ length: 100 }, (_, index) => [`extra${index}`, Number.NaN]);
    const payload = Object.fromEntries([...unlisted, ...listedNames.map((name) => [name, null])]);

    const result = validatePayload("create", payload);

    const violations = result.success ? [] : result.violationList;
    const nullable = bookingFields.filter((field) => field.nullable).length;
    expect(maxViolations).toBe(50);
    expect(violations).toHaveLength(50);
    expect(violations[listedNames.length - nullable]?.propertyPath).toEqual(["extra0"]);
  });

  test.each([
    { value: null },
    { value: undefined },
    { value: true },
    { value: 7 },
    { value: "consumerTripPartnerExternalReference" },
    { value: [] },
    { value: [reference] },
    { value: new Map(Object.entries(reference)) },
    { value: Object.assign(new Date(0), reference) },
    { value: () => reference },
  ])("of a value that is no plain object is about the value itself: $value", ({ value }) => {
    for (const kind of eventKinds) {
      expect(validatePayload(kind, value)).toEqual({
        success: false,
        violationList: [
          { message: expect.stringContaining("Must be an object"), code: expect.any(String), propertyPath: [] },
        ],
      });
    }
  });

  describe("with an application's own valibot configuration", () => {
    afterEach(() => v.deleteGlobalConfig());

    test("is the same", () => {
      const payload = { ...reference, consumerPhone: 7, agentEmail: 7, consumerLanguage: [] };
      const expected = validatePayload("create", payload);

      v.setGlobalConfig({ abortEarly: true, abortPipeEarly: true });

      expect(validatePayload("create", payload)).toEqual(expected);
    });
  });
});

describe("for any payload", () => {
  const canary = "canary";
  const canaryNumber = 7_744_221_199.5;
  /** JSON values whose strings and numbers would be recognized if a message repeated them. */
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      fc.constantFrom(null, true, false, "", canaryNumber, -canaryNumber * 1e300),
      fc.string({ unit: anyCharacter }).map((text) => canary + text),
      fc.constantFrom(`${canary}\0`, `${canary}\ud800`, canary.repeat(300)),
      fc.array(tie("value"), { maxLength: 5 }),
      fc.dictionary(fc.string({ unit: anyCharacter }), tie("value"), { maxKeys: 5 }),
    ),
  }));
  const names = fc.oneof(fc.constantFrom(...listedNames, ...retiredNames, "__proto__", "constructor"), fc.string());
  const payloads = fc.oneof(fc.dictionary(names, value), fc.dictionary(names, value, { noNullPrototype: true }), value);
  const kinds = fc.constantFrom(...eventKinds);

  test("no message repeats a value", () => {
    fc.assert(
      fc.property(kinds, payloads, (kind, payload) => {
        const result = validatePayload(kind, payload);

        for (const { message } of result.success ? [] : result.violationList) {
          expect(message).not.toContain(canary);
          expect(message).not.toContain("7744221199");
        }
      }),
      randomRuns(500),
    );
  });

  test("the result is the unchanged payload, or 1 to 50 violations", () => {
    fc.assert(
      fc.property(kinds, fc.oneof(payloads, fc.anything()), (kind, payload) => {
        const result = validatePayload(kind, payload);

        if (result.success) {
          expect(result.payload).toBe(payload);
        } else {
          expect(result.violationList.length).toBeGreaterThanOrEqual(1);
          expect(result.violationList.length).toBeLessThanOrEqual(maxViolations);
        }
      }),
      randomRuns(500),
    );
  });

  test("an accepted payload is accepted again after a round trip through JSON", () => {
    const fields = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
    fc.assert(
      fc.property(kinds, fields, (kind, unlisted) => {
        const payload = { ...unlisted, ...reference };
        fc.pre(validatePayload(kind, payload).success);
        const text = JSON.stringify(payload);

        const again = validatePayload(kind, JSON.parse(text));

        expect(again.success && JSON.stringify(again.payload)).toBe(text);
      }),
      randomRuns(200),
    );
  });

  /** Ordinary text is accepted without valibot. */
  test("the valibot schema decides the same about any text in a listed field", () => {
    const blank = fc.string({ unit: fc.constantFrom(" ", "\t", "\u00a0", "\ufeff"), maxLength: 3 });
    const storable = fc.string({ unit: fc.constantFrom("x", " ", "é", "😀"), minLength: 250, maxLength: 260 });
    const long = fc.nat(8).map((more) => "x".repeat(8_188 + more));
    const text = fc.oneof(blank, storable, long, fc.string({ unit: fc.constantFrom("x", "\0", "\ud800", "\udc00") }));
    fc.assert(
      fc.property(kinds, fc.constantFrom(...listedNames, ...retiredNames), text, (kind, name, value) => {
        const payload = { ...reference, [name]: value };
        const schema = kind === "delete" ? BookingReference : BookingInput;

        expect(validatePayload(kind, payload).success).toBe(v.is(schema, payload));
      }),
      randomRuns(1_000),
    );
  });

  test("the valibot schemas decide the same", () => {
    // valibot drops these names, so the schema cannot see what they contain.
    const seen = fc.dictionary(
      names.filter((name) => !["__proto__", "constructor", "prototype"].includes(name)),
      value,
    );
    fc.assert(
      fc.property(kinds, seen, fc.boolean(), (kind, fields, hasReference) => {
        const payload = { ...fields, ...(hasReference && reference) };
        const schema = kind === "delete" ? BookingReference : BookingInput;

        expect(v.is(schema, payload)).toBe(validatePayload(kind, payload).success);
      }),
      randomRuns(500),
    );
  });
});
