import { readFileSync } from "node:fs";
import { type JsonSchema, type OverrideActionContext, toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { BookingInput } from "../src/booking-input.ts";
import { BookingReference } from "../src/booking-reference.ts";
import { EventEnvelope } from "../src/event-envelope.ts";

/**
 * The contract as JSON Schema, by file name: all that valibot's schemas say and JSON Schema can.
 *
 * JSON Schema can't say how many values there may be, how deep they may be nested, that text must not hold half of a
 * surrogate pair, or which number a text stood for. So it accepts some payloads that the validator refuses; what the validator accepts, it accepts.
 */
export function buildJsonSchemas(): Record<string, JsonSchema> {
  const saysWhichBooking: JsonSchema = {
    anyOf: [{ required: ["consumerTripPartnerExternalReference"] }, { required: ["consumerPartnerExternalReference"] }],
  };
  return {
    "booking-input.json": {
      ...convert(BookingInput, "booking-input.ts", {
        title: "BookingInput",
        description: "The payload of create and update: a whole booking. Fields that are not listed are kept.",
      }),
      ...saysWhichBooking,
    },
    "booking-reference.json": {
      ...convert(BookingReference, "booking-reference.ts", {
        title: "BookingReference",
        description: "The payload of delete: which booking. Other fields are kept.",
      }),
      ...saysWhichBooking,
    },
    "event-envelope.json": withPayload(
      convert(EventEnvelope, "event-envelope.ts", {
        title: "EventEnvelope",
        description: "An accepted event on its way to the worker that applies it.",
      }),
      { type: "object", ...saysWhichBooking },
    ),
  };
}

function withPayload(envelope: JsonSchema, rules: JsonSchema): JsonSchema {
  const { payload, ...others } = envelope.properties ?? {};
  return { ...envelope, properties: { ...others, payload: { ...Object(payload), ...rules } } };
}

function convert(
  schema: v.GenericSchema,
  sourceFile: string,
  about: { title: string; description: string },
): JsonSchema {
  const {
    $schema,
    properties = {},
    required = [],
    ...rest
  } = toJsonSchema(schema, {
    target: "draft-2020-12",
    typeMode: "input",
    errorMode: "ignore",
    // They hold what bookingFields needs.
    ignoreActions: ["metadata"],
    overrideAction: convertAction,
  });
  const comments = readFieldComments(sourceFile);
  const described = Object.entries(properties).map(([name, property]) => {
    const comment = comments.get(name);
    if (comment === undefined) throw new Error(`In ${sourceFile}, ${name} has no comment above it.`);
    return [name, Object.assign(comment, property)] as const;
  });
  return {
    ...($schema && { $schema }),
    ...about,
    ...rest,
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(described),
  };
}

/** Rules that the conversion leaves out, although JSON Schema has words for them. Its lengths are in code points too. */
function convertAction({
  valibotAction: { type },
  valibotAction,
  jsonSchema,
}: OverrideActionContext): JsonSchema | null {
  if (type === "max_code_points") {
    const { requirement } = valibotAction as v.MaxCodePointsAction<string, number, undefined>;
    return { ...jsonSchema, maxLength: requirement };
  }
  // The format alone is a hint, and those who check it don't agree on what it means.
  if (type === "rfc_email") return { ...jsonSchema, pattern: v.RFC_EMAIL_REGEX.source };
  return null;
}

/** What editors show for a field is also its description here, so that there is one text to keep. */
function readFieldComments(sourceFile: string): Map<string, JsonSchema> {
  const source = readFileSync(new URL(`../src/${sourceFile}`, import.meta.url), "utf8");
  const comments = source.matchAll(/^ +\/\*\* (?<comment>(?:(?!\*\/).)*) \*\/\s+(?<name>\w+):/gm);
  return new Map(
    Array.from(comments, ({ groups: { name = "", comment = "" } = {} }) => {
      const description = comment.replace("@deprecated ", "");
      return [name, { description, ...(description !== comment && { deprecated: true }) }];
    }),
  );
}
