import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { type Answer, bookingFields, eventKinds, lookupAnswers } from "../src/index.ts";
import { buildJsonSchemas } from "./json-schemas.ts";
import { buildOpenApi } from "./openapi.ts";

const file = new URL("../openapi.json", import.meta.url);
const committed = JSON.parse(readFileSync(file, "utf8"));
const { paths, components } = committed;

// Formats are hints; the patterns beside them decide.
const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, validateFormats: false });
ajv.addVocabulary(Object.keys(committed));
ajv.addSchema(committed, "openapi.json");

function isValid(schemaName: string, value: unknown): boolean {
  return ajv.validate({ $ref: `openapi.json#/components/schemas/${schemaName}` }, value);
}

test("the committed document is up to date; otherwise run `npm run json-schema`", () => {
  expect(committed).toEqual(JSON.parse(JSON.stringify(buildOpenApi())));
});

test("an independent linter finds nothing, not even a warning", () => {
  const linter = fileURLToPath(import.meta.resolve("@redocly/cli/bin/cli.js"));
  const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const { stdout } = spawnSync(process.execPath, [linter, "lint", "--format=json", fileURLToPath(file)], {
    encoding: "utf8",
    env: { ...process.env, ...environment },
  });

  expect(JSON.parse(stdout).problems).toEqual([]);
});

test("the schemas of payloads are the JSON Schemas", () => {
  const { "booking-input.json": booking, "booking-reference.json": reference } = buildJsonSchemas();
  const { $schema } = booking ?? {};

  expect({ $schema, ...components.schemas.BookingInput }).toEqual(booking);
  expect({ $schema, ...components.schemas.BookingReference }).toEqual(reference);
});

test("members of the same name have the descriptions of their own schemas", () => {
  expect(components.schemas.Activity.properties.at.description).toMatch(/When we looked/);
  expect(components.schemas.ActivityHour.properties.at.description).toBe("When the hour began.");
  expect(components.schemas.AnswerTotal.properties.count.description).toBe("How many requests got it.");
});

describe.each(bookingFields)("$name", ({ name, nullable, type, acceptsAnything }) => {
  const { BookingInput, BookingInputForm } = components.schemas;

  test("has a description, a type, an example and a format if there is one", () => {
    const text = { type: "string", ...(type === "email" && { format: "email" }) };

    expect(BookingInput.properties[name]).toMatchObject({
      description: expect.any(String),
      examples: [expect.any(String)],
      ...(acceptsAnything ? {} : nullable ? { anyOf: [text, { type: "null" }] } : text),
    });
  });

  test("is a string in a form", () => {
    expect(BookingInputForm.properties[name]).toMatchObject({ description: expect.any(String), type: "string" });
    expect(BookingInputForm.properties[name]).not.toHaveProperty("anyOf");
  });
});

test("the retired names are listed as such, and accepted", () => {
  for (const name of ["consumerTripBookingDate", "consumerTripDepartureFlightAirline"]) {
    expect(components.schemas.BookingInput.properties[name]).toMatchObject({ deprecated: true });
    expect(isValid("BookingInputForm", { consumerPartnerExternalReference: "x", [name]: "x" })).toBe(true);
  }
});

const forms = readdirSync(new URL("../examples/", import.meta.url))
  .map((name) => JSON.parse(readFileSync(new URL(`../examples/${name}`, import.meta.url), "utf8")))
  .filter(({ contentType }) => contentType === "application/x-www-form-urlencoded");

test.each(forms)(
  "a form is judged as the validator does: $description",
  ({ kind, body, payload, expect: expected }) => {
    const fields = Object.fromEntries(new URLSearchParams(body));

    expect(fields).toEqual(payload);
    expect(isValid(kind === "delete" ? "BookingReferenceForm" : "BookingInputForm", fields)).toBe("valid" in expected);
  },
);

test("a form may have unlisted fields, but only strings", () => {
  const booking = { consumerTripPartnerExternalReference: "booking-2001" };

  expect(isValid("BookingInputForm", { ...booking, loyaltyTier: "gold" })).toBe(true);
  expect(isValid("BookingInputForm", { ...booking, loyaltyTier: null })).toBe(false);
  expect(isValid("BookingInputForm", { ...booking, consumerLanguage: null })).toBe(false);
  expect(isValid("BookingInputForm", { consumerLanguage: "en" })).toBe(false);
});

describe.each(eventKinds)("%s", (kind) => {
  const { post } = paths[`/booking-event/${kind}/{secret}`];

  test("has both content types, each with examples", () => {
    const { content } = post.requestBody;

    expect(Object.keys(content)).toEqual(["application/json", "application/x-www-form-urlencoded"]);
    for (const { examples } of Object.values<{ examples: object }>(content)) {
      expect(Object.keys(examples)).not.toEqual([]);
    }
  });

  test("has every answer", () => {
    const statuses = ["200", "400", "403", "404", "405", "408", "413", "415", "422", "429", "431", "500", "503"];

    expect(Object.keys(post.responses)).toEqual(statuses);
  });
});

interface Response {
  headers: object;
  content: Record<string, { examples: Record<string, { value: { code?: string } }> }>;
}

const questions = [
  ["get", "/booking-event/receipt/{secret}/{eventId}"],
  ["get", "/booking-event/booking/{secret}"],
  ["post", "/booking-event/reconcile/{secret}"],
  ["get", "/booking-event/activity/{secret}"],
] as const;

describe.each(questions)("%s %s", (method, path) => {
  const pointer = `openapi.json${encodeURI(`#/paths/${path.replaceAll("/", "~1")}/${method}`)}`;
  const responses: Record<string, Response | { $ref: string }> = paths[path][method].responses;

  test("has every answer, and examples that are valid", () => {
    expect(Object.keys(responses)).toEqual(
      expect.arrayContaining(["200", "400", "403", "404", "405", "408", "429", "431", "500", "503"]),
    );
    for (const [status, response] of Object.entries(responses)) {
      if ("$ref" in response) continue;
      expect(Object.keys(response.headers).includes("Retry-After")).toBe(["429", "503"].includes(status));
      for (const [type, { examples }] of Object.entries(response.content)) {
        const schema = `${pointer}/responses/${status}/content/${type.replaceAll("/", "~1")}/schema`;
        for (const { value } of Object.values(examples)) {
          ajv.validate({ $ref: schema }, value);
          expect(ajv.errors).toBeNull();
        }
      }
    }
  });
});

test("each answer to a question is in the document", () => {
  const examples = questions
    .flatMap(([method, path]) => Object.values<Response>(paths[path][method].responses))
    .flatMap(({ content }) => Object.keys(content?.["application/json"]?.examples ?? {}));
  const codes = Object.values<object>(lookupAnswers)
    .filter((answer): answer is Answer => typeof answer !== "function")
    .map(({ code }) => code);

  expect(codes).toContain("no-such-event");
  expect(examples).toEqual(
    expect.arrayContaining([...codes, "invalid-list-line", "list-too-long", ...["applied", "active"]]),
  );
});

const responses = Object.entries<Response>(components.responses);

test.each(responses)("the answers %s have headers and an example for each code", (status, { headers, content }) => {
  const { examples = {} } = content["application/json"] ?? {};

  expect(Object.keys(headers)).toContain("X-Request-Id");
  expect(Object.keys(headers).includes("Retry-After")).toBe(["429", "503"].includes(status));
  expect(Object.keys(headers).includes("Allow")).toBe(status === "405");
  for (const [code, { value }] of Object.entries(examples)) {
    if (status !== "200") expect(value.code).toBe(code);
    expect(isValid(schemaOf(status, value), value)).toBe(true);
  }
});

function schemaOf(status: string, value: object): string {
  if (status === "200") return "dryRun" in value ? "DryRunPassed" : "Accepted";
  return status === "422" ? "InvalidData" : "Refusal";
}

test("no code belongs to two statuses", () => {
  const codes = responses.flatMap(([, { content }]) => Object.keys(content["application/json"]?.examples ?? {}));

  expect(codes).toHaveLength(new Set(codes).size);
});
