import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parseJson } from "@booking-events/schema";
import { type Check, check } from "../check.ts";
import { invalid, warned } from "../expectations.ts";
import type { Request } from "../request.ts";

/** An example of the schema package, as its README describes the files. */
interface Example {
  description: string;
  kind: NonNullable<Request["operation"]>;
  payload: Record<string, unknown>;
  body?: string;
  contentType?: string;
  expect:
    | { valid: true; warnings?: readonly { code: string; propertyPath: readonly string[] }[] }
    | { violationList: readonly { propertyPath: readonly string[] }[] };
}

/** Every example is a check. Its reference is replaced by one of the run. */
export const exampleChecks: readonly Check[] = readExamples().map(({ name, example }) => {
  const { kind, body, contentType = "application/json", description, expect } = example;
  const replaced = (text: string, reference: string) => text.replaceAll("booking-2001", reference);
  return check(`examples/${name}`, description, {
    request: (reference) => ({
      operation: kind,
      type: contentType,
      body: body === undefined ? withReference(example.payload, reference) : replaced(body, reference),
    }),
    expect:
      "valid" in expect
        ? warned(...(expect.warnings ?? []))
        : invalid(...expect.violationList.map(({ propertyPath }) => propertyPath)),
  });
});

function readExamples(): { name: string; example: Example }[] {
  const directory = dirname(createRequire(import.meta.url).resolve("@booking-events/schema/examples/delete.json"));
  return readdirSync(directory)
    .toSorted()
    .map((fileName) => {
      const example = parseJson(readFileSync(join(directory, fileName), "utf8")) as Example;
      return { name: fileName.replace(".json", ""), example };
    });
}

/** Keeps the length of a reference, and white space after it, which may be what the example is about, and references that are not text. */
function withReference(payload: Example["payload"], reference: string): string {
  return JSON.stringify(payload, (key, value) => {
    const isReference = /^consumer(Trip)?PartnerExternalReference$/.test(key);
    if (!isReference || typeof value !== "string" || value.trim() === "") return value;
    const [blanks = ""] = /\s+$/.exec(value) ?? [];
    return reference.padEnd(value.length - blanks.length, "x") + blanks;
  });
}
