import { readdirSync, readFileSync } from "node:fs";
import { randomRuns } from "@booking-events/harness/random-runs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bookingFields,
  type EventEnvelope,
  type EventKind,
  ExactNumber,
  type Violation,
  validatePayload,
} from "../src/index.ts";
import { acceptedDatePattern } from "../src/payload/date-pattern.ts";
import { anyCharacter } from "../src/testing/any-character.ts";
import { buildJsonSchemas } from "./json-schemas.ts";

const readJson = (path: string): unknown => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const fileNames = readdirSync(new URL("../json-schema/", import.meta.url));

// Formats are hints; the patterns beside them decide.
const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, validateFormats: false });
for (const fileName of fileNames) ajv.addSchema(readJson(`../json-schema/${fileName}`) as object, fileName);

function isAcceptedBy(fileName: string, value: unknown): boolean {
  const validate = ajv.getSchema(fileName);
  if (validate === undefined) throw new Error(`No schema ${fileName}.`);
  return validate(value) === true;
}

function isAccepted(kind: EventKind, payload: unknown): boolean {
  return isAcceptedBy(kind === "delete" ? "booking-reference.json" : "booking-input.json", payload);
}

test("the committed files are up to date; otherwise run `npm run json-schema`", () => {
  const committed = Object.fromEntries(fileNames.map((fileName) => [fileName, readJson(`../json-schema/${fileName}`)]));

  expect(committed).toEqual(JSON.parse(JSON.stringify(buildJsonSchemas())));
});

test("every listed field has a description, and a type if it has a rule", () => {
  const { properties = {} } = buildJsonSchemas()["booking-input.json"] ?? {};

  for (const { name, nullable, acceptsAnything } of bookingFields) {
    const text = { type: "string" };
    expect(properties[name]).toMatchObject({
      description: expect.stringMatching(/^[A-Z].{10,}\.$/),
      ...(acceptsAnything ? {} : nullable ? { anyOf: [text, { type: "null" }] } : text),
    });
  }
});

describe("the JSON Schema agrees with the validator", () => {
  const examples = readdirSync(new URL("../examples/", import.meta.url)).map((fileName) => {
    const example = readJson(`../examples/${fileName}`) as {
      kind: EventKind;
      payload: object;
      beyondJsonSchema?: true;
      expect: { violationList?: Violation[] };
    };
    return { fileName, ...example };
  });

  test.each(examples)("on $fileName", ({ kind, payload, beyondJsonSchema, expect: expected }) => {
    expect(isAccepted(kind, payload)).toBe("valid" in expected || beyondJsonSchema === true);
  });

  const fieldValues = fc.oneof(
    fc.constantFrom(null, true, 7, "", [], {}, "text", "2026-02-29", "2026-06-14T07:27:17.335+0200"),
    fc.constantFrom("sam.o'example@example.com", "sam@localhost", "sam@example..com"),
    fc.stringMatching(acceptedDatePattern).filter((text) => text.trim().length <= 128),
    fc.emailAddress(),
    // Code points, some of which are two UTF-16 code units.
    fc.integer({ min: 250, max: 260 }).map((length) => "😀".repeat(length)),
  );
  const names = fc.constantFrom(
    ...bookingFields.map(({ name }) => name),
    "consumerTripBookingDate",
    "consumerTripDepartureFlightAirline",
    "loyalty",
  );
  const kinds = fc.constantFrom<EventKind>("create", "update", "delete");

  const references = fc.constantFrom({}, { consumerTripPartnerExternalReference: "booking-2001" });
  const unlistedValues = fc.oneof(
    { weight: 9, arbitrary: fc.jsonValue({ maxDepth: 3, stringUnit: anyCharacter }) },
    { weight: 1, arbitrary: fc.constantFrom("1e999", "1e1000").map((digits) => new ExactNumber(digits)) },
  );
  const unlisted = fc.dictionary(fc.string({ unit: anyCharacter }), unlistedValues, { maxKeys: 3 });
  /** A row of the README says what JSON Schema cannot express, and each has an example. */
  const inexpressible = new Set(
    examples.flatMap(({ beyondJsonSchema, expect: { violationList = [] } }) =>
      beyondJsonSchema === true ? violationList.map(({ message }) => message) : [],
    ),
  );

  test("on generated payloads, except for the rules that it cannot express", () => {
    const outcomes = { accepted: 0, refused: 0, inexpressible: 0 };
    fc.assert(
      fc.property(
        ...[kinds, references, unlisted, fc.dictionary(names, fieldValues, { maxKeys: 3 })],
        (kind, reference, others, fields) => {
          const payload = { ...others, ...reference, ...fields };
          const result = validatePayload(kind, payload);
          const violations = result.success ? [] : result.violationList;
          const expressible = violations.filter(({ message }) => !inexpressible.has(message));

          expect(isAccepted(kind, payload)).toBe(expressible.length === 0);
          outcomes[result.success ? "accepted" : expressible.length > 0 ? "refused" : "inexpressible"] += 1;
        },
      ),
      randomRuns(2_000),
    );
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(10);
  });

  test("on an envelope, whose payload only has to identify a booking", () => {
    const envelope: EventEnvelope = {
      version: 1,
      eventId: "01932f3e-7b3a-7c6e-9d2f-3a5b7c9d1e2f",
      kind: "create",
      partner: "acme",
      sequence: 1,
      receivedAt: "2026-06-14T07:27:17.335Z",
      idempotencyKey: null,
      payload: { consumerTripPartnerExternalReference: "booking-2001" },
    };
    const payload = { consumerTripPartnerExternalReference: "booking-2001", consumerPhone: 7 };

    expect(isAcceptedBy("event-envelope.json", envelope)).toBe(true);
    expect(isAcceptedBy("event-envelope.json", { ...envelope, payload })).toBe(true);
    for (const wrong of [
      { version: 2 },
      { eventId: "" },
      { sequence: 0 },
      { receivedAt: "" },
      { idempotencyKey: "" },
      { payload: {} },
      { payload: [] },
    ]) {
      expect(isAcceptedBy("event-envelope.json", { ...envelope, ...wrong })).toBe(false);
    }
  });
});
