import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bookingInput } from "../src/testing/index.ts";
import { findBreakingChanges, type OpenApi } from "./breaking-changes.ts";

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const released: Document = JSON.parse(read("released/openapi.json"));
const current: Document = JSON.parse(read("openapi.json"));
const changelog = read("../../docs/contract-changelog.md");

type Schema = Record<string, unknown> & { properties: Record<string, Schema>; required: string[] };
type Document = OpenApi & { components: { schemas: Record<string, Schema> } };

test("no change since the last release breaks a partner's program, unless the changelog of the contract names it", () => {
  const [, unreleased = ""] = /^## Unreleased\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(changelog) ?? [];
  const unannounced = findBreakingChanges(released, current).filter((change) => !unreleased.includes(change));

  expect(unannounced).toEqual([]);
});

/** Compares the released document with a changed copy of it. */
function compareWith(change: (document: Document) => void): { changes: string[]; changed: Document } {
  const changed = structuredClone(released);
  change(changed);
  return { changes: findBreakingChanges(released, changed), changed };
}

function fieldOf(document: Document, name: string, schema = "BookingInput"): Schema {
  const field = document.components.schemas[schema]?.properties[name];
  if (field === undefined) throw new Error(`${schema} has no ${name}.`);
  return field;
}

function schemaOf(document: Document, name: string): Schema {
  const schema = document.components.schemas[name];
  if (schema === undefined) throw new Error(`There is no ${name}.`);
  return schema;
}

function replaceField(document: Document, name: string, field: object): void {
  schemaOf(document, "BookingInput").properties[name] = field as Schema;
}

function validatorOf(document: Document): (payload: unknown) => boolean {
  // Formats are hints; the patterns beside them decide.
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "openapi.json");
  const validate = ajv.compile({ $ref: "openapi.json#/components/schemas/BookingInput" });
  return (payload) => validate(payload);
}

const wasAccepted = validatorOf(released);
const reference = { consumerTripPartnerExternalReference: "TRIP-1" };
const long = "x".repeat(500);

describe("a breaking change of what partners send is named:", () => {
  /** With a payload that was accepted and is refused after the change, as evidence. */
  const breaks: [string, (document: Document) => void, string, object | null][] = [
    [
      "a field is removed",
      (document) => delete schemaOf(document, "BookingInput").properties["consumerPhone"],
      "BookingInput.consumerPhone: was removed",
      // It is then stored as an unlisted field, but no program reads it.
      null,
    ],
    [
      "a type is narrowed",
      (document) => replaceField(document, "consumerGivenName", { type: "integer" }),
      "BookingInput.consumerGivenName: refuses string now",
      { ...reference, consumerGivenName: "Ada" },
    ],
    [
      "null is no longer allowed",
      (document) => replaceField(document, "consumerLanguage", { type: "string", minLength: 1, maxLength: 1_024 }),
      "BookingInput.consumerLanguage: refuses null now",
      { ...reference, consumerLanguage: null },
    ],
    [
      "a field is required",
      (document) => Object.assign(schemaOf(document, "BookingInput"), { required: ["consumerPhone"] }),
      "BookingInput.consumerPhone: is required now",
      reference,
    ],
    [
      "the consumer reference alone no longer suffices",
      (document) => {
        Object.assign(schemaOf(document, "BookingInput"), {
          allOf: [{ type: "object", required: ["consumerTripPartnerExternalReference"] }],
        });
      },
      "BookingInput.consumerTripPartnerExternalReference: is required now",
      { consumerPartnerExternalReference: "C-1" },
    ],
    [
      "values are enumerated",
      (document) => Object.assign(fieldOf(document, "consumerTripIsLocal"), { enum: ["true", "false"] }),
      'BookingInput.consumerTripIsLocal: enum was absent, and is ["true","false"] now',
      { ...reference, consumerTripIsLocal: "yes" },
    ],
    [
      "a length shrinks",
      (document) => Object.assign(fieldOf(document, "consumerGivenName"), { maxLength: 255 }),
      "BookingInput.consumerGivenName: maxLength was 1024, and is 255 now",
      { ...reference, consumerGivenName: long },
    ],
    [
      "a length of a nullable field shrinks",
      (document) => {
        replaceField(document, "consumerLanguage", { anyOf: [{ type: "string", maxLength: 10 }, { type: "null" }] });
      },
      "BookingInput.consumerLanguage: maxLength was 1024, and is 10 now",
      { ...reference, consumerLanguage: long },
    ],
    [
      "a format is required",
      (document) => Object.assign(fieldOf(document, "consumerPhone"), { format: "phone" }),
      'BookingInput.consumerPhone: format was absent, and is "phone" now',
      null,
    ],
    [
      "a pattern changes",
      (document) => Object.assign(fieldOf(document, "consumerPhone"), { pattern: "^\\+[0-9]+$" }),
      'BookingInput.consumerPhone: pattern was absent, and is "^\\\\+[0-9]+$" now',
      { ...reference, consumerPhone: "020 7183" },
    ],
    [
      "unlisted fields are refused",
      (document) => Object.assign(schemaOf(document, "BookingInput"), { additionalProperties: false }),
      "BookingInput: refuses unlisted fields now",
      { ...reference, loyaltyTier: "gold" },
    ],
    [
      "unlisted fields must be strings",
      (document) => Object.assign(schemaOf(document, "BookingInput"), { additionalProperties: { type: "string" } }),
      "BookingInput.*: refuses any type now",
      { ...reference, loyaltyTier: 7 },
    ],
    [
      "a field is retired",
      (document) => replaceField(document, "consumerPhone", { not: {} }),
      "BookingInput.consumerPhone: not was absent, and is {} now",
      { ...reference, consumerPhone: "1" },
    ],
  ];

  test.each(breaks)("%s", (_, change, named, evidence) => {
    const { changes, changed } = compareWith(change);

    expect(changes).toContain(named);
    expect(new Set(changes).size).toBe(1);
    if (evidence !== null) {
      expect(wasAccepted(evidence)).toBe(true);
      expect(validatorOf(changed)(evidence)).toBe(false);
    }
  });

  test.each<[string, (document: Document) => void, string]>([
    [
      "an operation is removed",
      (document) => delete document.paths["/booking-event/delete/{secret}"],
      "POST /booking-event/delete/{secret}: was removed",
    ],
    [
      "forms are refused",
      (document) => {
        const operation = document.paths["/booking-event/create/{secret}"]?.["post"] as Operation;
        delete operation.requestBody.content["application/x-www-form-urlencoded"];
      },
      "POST /booking-event/create/{secret} application/x-www-form-urlencoded: was removed",
    ],
    [
      "a header is required",
      (document) => Object.assign(document.components["parameters"]?.["idempotencyKey"] ?? {}, { required: true }),
      "POST /booking-event/create/{secret} Idempotency-Key: is required now",
    ],
  ])("%s", (_, change, named) => {
    expect(compareWith(change).changes).toContain(named);
  });
});

interface Operation {
  requestBody: { content: Record<string, unknown> };
  responses: Record<string, unknown>;
}

describe("a breaking change of an answer is named:", () => {
  test.each<[string, (document: Document) => void, string]>([
    [
      "a member is removed",
      (document) => delete schemaOf(document, "Accepted").properties["eventId"],
      "Accepted.eventId: was removed",
    ],
    [
      "a member may be missing",
      (document) => Object.assign(schemaOf(document, "Accepted"), { required: ["success"] }),
      "Accepted.eventId: may be missing now",
    ],
    [
      "a member may be null",
      (document) => {
        schemaOf(document, "Refusal").properties["message"] = { type: ["string", "null"] } as unknown as Schema;
      },
      "Refusal.message: may be null now",
    ],
    [
      "another type of body",
      (document) => {
        const operation = document.paths["/booking-event/create/{secret}"]?.["post"] as Operation;
        operation.responses["422"] = { description: "…", content: { "text/plain": { schema: { type: "string" } } } };
      },
      "POST /booking-event/create/{secret} 422 application/json: was removed",
    ],
  ])("%s", (_, change, named) => {
    expect(compareWith(change).changes).toEqual([named]);
  });
});

describe("a change that breaks nothing passes:", () => {
  const additions: [string, (document: Document) => void][] = [
    ["nothing", () => {}],
    ["a new optional field", (document) => replaceField(document, "consumerTripSeat", { type: "string" })],
    ["null is allowed", (document) => replaceField(document, "consumerPhone", { type: ["string", "null"] })],
    [
      "a longer text is allowed",
      (document) => Object.assign(fieldOf(document, "consumerGivenName"), { maxLength: 4_096 }),
    ],
    ["a pattern is dropped", (document) => delete fieldOf(document, "agentEmail")["pattern"]],
    ["another description", (document) => Object.assign(fieldOf(document, "consumerPhone"), { description: "…" })],
    ["the reference is no longer required", (document) => delete schemaOf(document, "BookingInput")["allOf"]],
    [
      "a new member of an answer",
      (document) => {
        schemaOf(document, "Accepted").properties["warnings"] = { type: "array" } as unknown as Schema;
        schemaOf(document, "Accepted").required.push("warnings");
      },
    ],
    [
      "a new operation and a new status",
      (document) => {
        document.paths["/booking-event/receipt/{secret}/{eventId}"] = { get: { responses: {} } };
        const operation = document.paths["/booking-event/create/{secret}"]?.["post"] as Operation;
        operation.responses["507"] = { description: "…" };
      },
    ],
  ];

  test.each(additions)("%s", (_, change) => {
    const { changes, changed } = compareWith(change);

    expect(changes).toEqual([]);
    const isAccepted = validatorOf(changed);
    fc.assert(
      fc.property(bookingInput(), (payload) => wasAccepted(payload) && isAccepted(payload)),
      { numRuns: 100 },
    );
  });
});
