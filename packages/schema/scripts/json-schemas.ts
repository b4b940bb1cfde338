import { readFileSync } from "node:fs";
import { type JsonSchema, type OverrideActionContext, toJsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";
import { EventEnvelope } from "../src/envelope/event-envelope.ts";
import { type BookingFieldName, BookingInput } from "../src/payload/booking-input.ts";
import { BookingReference } from "../src/payload/booking-reference.ts";
import { acceptedDatePattern } from "../src/payload/date-pattern.ts";
import { isDateOrBlank, isEmailOrBlank } from "../src/payload/field-types.ts";
import { readings } from "./readings.ts";

/**
 * Returns the contract as JSON Schema, by file name.
 *
 * JSON Schema cannot limit the number of values or their nesting, exclude unpaired surrogates, or tell how a number was
 * written. It therefore accepts some payloads that the validator refuses. It accepts all that the validator accepts.
 */
export function buildJsonSchemas(): Record<string, JsonSchema> {
  const identifiesBooking: JsonSchema = {
    // The default, but some linters and generators expect it in words.
    additionalProperties: true,
    // As a union inside of an intersection, which generators of types understand. They take a bare list of required
    // members for "anything".
    allOf: [
      { anyOf: [mustHave("consumerTripPartnerExternalReference"), mustHave("consumerPartnerExternalReference")] },
    ],
  };
  return {
    "booking-input.json": {
      ...convert(BookingInput, "payload/booking-input.ts", {
        title: "BookingInput",
        description: "The payload of create and update: a complete booking. Unlisted fields are kept.",
      }),
      ...identifiesBooking,
    },
    "booking-reference.json": {
      ...convert(BookingReference, "payload/booking-reference.ts", {
        title: "BookingReference",
        description: "The payload of delete: the booking's reference. Other fields are kept.",
      }),
      ...identifiesBooking,
    },
    "event-envelope.json": withPayload(
      convert(EventEnvelope, "envelope/event-envelope.ts", {
        title: "EventEnvelope",
        description: "An accepted event on its way to the worker that applies it.",
      }),
      { type: "object", ...identifiesBooking },
    ),
  };
}

function mustHave(name: BookingFieldName): JsonSchema {
  // Some character that is not white space.
  return { type: "object", required: [name], properties: { [name]: { type: "string", pattern: "\\S" } } };
}

function withPayload(envelope: JsonSchema, rules: JsonSchema): JsonSchema {
  const { payload, ...others } = envelope.properties ?? {};
  return { ...envelope, properties: { ...others, payload: { ...Object(payload), ...rules } } };
}

/**
 * @param options.name of the schema in its file. Default: its title
 * @param options.definitions schemas that have a place of their own in a document, by name: others refer to them
 */
export function convert(
  schema: v.GenericSchema,
  sourceFile: string,
  about: { title: string; description: string },
  { name = about.title, definitions = {} }: { name?: string; definitions?: Record<string, v.GenericSchema> } = {},
): JsonSchema {
  const {
    $schema,
    $defs: _,
    properties = {},
    required = [],
    ...rest
  } = toJsonSchema(schema, {
    target: "draft-2020-12",
    typeMode: "input",
    errorMode: "ignore",
    // The metadata is for `bookingFields` only.
    ignoreActions: ["metadata"],
    overrideAction: convertAction,
    definitions,
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
  });
  const comments = readFieldComments(sourceFile, name);
  const isPayload = sourceFile.startsWith("payload/");
  const examples = isPayload ? readFullBooking() : {};
  const described = Object.entries(properties).map(([name, property]) => {
    const comment = comments.get(name);
    if (comment === undefined) throw new Error(`In ${sourceFile}, ${name} has no comment above it.`);
    const example = examples[name];
    const reading = isPayload ? readings[name as BookingFieldName] : undefined;
    const about =
      reading === undefined ? comment : { ...comment, description: `${comment.description} Read as: ${reading}.` };
    return [name, { ...about, ...Object(property), ...(example !== undefined && { examples: [example] }) }] as const;
  });
  return {
    ...($schema && { $schema }),
    ...about,
    ...rest,
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(described),
  };
}

/**
 * Converts rules that the library leaves out although JSON Schema can express them. JSON Schema also measures length in
 * code points.
 */
function convertAction({
  valibotAction: { type },
  valibotAction,
  jsonSchema,
}: OverrideActionContext): JsonSchema | null {
  if (type === "max_code_points") {
    const { requirement } = valibotAction as v.MaxCodePointsAction<string, number, undefined>;
    return { ...jsonSchema, maxLength: requirement };
  }
  if (type === "check") {
    const { requirement } = valibotAction as v.CheckAction<string, undefined>;
    if (requirement === isDateOrBlank) return { ...jsonSchema, pattern: acceptedDatePattern.source };
    // An annotation: names and white space around an address are accepted too.
    if (requirement === isEmailOrBlank) return { ...jsonSchema, format: "email" };
  }
  return null;
}

/** Has an example of each listed field. */
function readFullBooking(): Record<string, string> {
  return JSON.parse(readFileSync(new URL("../examples/full-booking.json", import.meta.url), "utf8")).payload;
}

/** Reads the comment above a schema. */
export function readSchemaComment(sourceFile: string, schemaName: string): string {
  const [, comment] =
    new RegExp(`^/\\*\\* (.*) \\*/\nexport const ${schemaName} = `, "m").exec(readSource(sourceFile)) ?? [];
  if (comment === undefined) throw new Error(`In ${sourceFile}, ${schemaName} has no comment above it.`);
  return comment;
}

function readSource(file: string): string {
  return readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8");
}

/**
 * Reads each field's comment, so editors and the JSON Schema show the same description.
 *
 * @param schemaName of which the comments count if other schemas of the file have members of the same names
 */
function readFieldComments(sourceFile: string, schemaName: string): Map<string, JsonSchema> {
  const source = readSource(sourceFile);
  const [, own = ""] = source.split(`\nexport const ${schemaName} = `);
  const comments = `${source}\n${own.split("\n});")[0]}`.matchAll(
    /^ +\/\*\* (?<comment>(?:(?!\*\/).)*) \*\/\s+(?<name>\w+):/gm,
  );
  return new Map(
    Array.from(comments, ({ groups: { name = "", comment = "" } = {} }) => {
      const description = comment.replace("@deprecated ", "");
      return [name, { description, ...(description !== comment && { deprecated: true }) }];
    }),
  );
}
