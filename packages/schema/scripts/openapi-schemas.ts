import type { JsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";
import * as activityBodies from "../src/answers/activity.ts";
import { ListViolation } from "../src/answers/list-violations.ts";
import { Readings } from "../src/answers/readings.ts";
import { Violation } from "../src/payload/violation.ts";
import { Warning } from "../src/warnings/warning.ts";
import { convert, readSchemaComment } from "./json-schemas.ts";

/** Where others have one of these, they refer to it. */
const definitions = { ...activityBodies, ListViolation, Readings, Violation, Warning };

/**
 * Describes schemas of a file, by their names there, with the comments that stand above them.
 *
 * @param titles those that have another name in the document
 */
export function describeSchemas(
  file: string,
  schemas: Record<string, v.GenericSchema>,
  titles: Record<string, string> = {},
): Record<string, JsonSchema> {
  const described = Object.entries(schemas).map(([name, schema]) => {
    const title = titles[name] ?? name;
    return [title, describeSchema(file, schema, { title, description: readSchemaComment(file, name) }, name)];
  });
  return Object.fromEntries(described);
}

/**
 * @param file where the comments on the members are
 * @param name of the schema there
 */
export function describeSchema(
  file: string,
  schema: v.GenericSchema,
  about: { title: string; description: string },
  name = about.title,
): JsonSchema {
  const others = Object.entries(definitions).filter(([, definition]) => definition !== schema);
  return withoutDialect(convert(schema, file, about, { name, definitions: Object.fromEntries(others) }));
}

/** In OpenAPI 3.1, the dialect of 2020-12 is the default. */
export function withoutDialect(schema: JsonSchema | undefined): JsonSchema {
  const { $schema: _, ...rest } = schema ?? {};
  return rest;
}

export function schemaRef(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}
