import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { isolatedDeclarationSync } from "rolldown/experimental";
import { bookingFields, eventKinds, referenceKinds } from "../src/index.ts";
import { buildOpenApi } from "./openapi.ts";

/** What the script reads of a JSON Schema. */
interface Schema {
  $ref?: string | undefined;
  description?: string | undefined;
  type?: string | undefined;
  const?: unknown | undefined;
  enum?: unknown[] | undefined;
  oneOf?: Schema[] | undefined;
  anyOf?: Schema[] | undefined;
  items?: Schema | undefined;
  properties?: Record<string, Schema> | undefined;
  required?: string[] | undefined;
  additionalProperties?: unknown | undefined;
}

const source = new URL("../src/client/", import.meta.url);

/** In the order of the file. */
const bodies = [
  ...["BookingInput", "BookingReference", "Accepted", "DryRunPassed", "Warning", "Violation"],
  ...["Receipt", "Readings", "BookingStatus", "ListedReference", "Difference"],
  ...["Activity", "ActivityHour", "AnswerTotal", "RefusedRequest", "FieldTotal", "Notice", "FailedEvent"],
  ...["WaitingTotal", "SecretState", "LimitsInUse"],
];
/** Where the document and the code have different names. */
const namesInCode: Record<string, string> = { Accepted: "AcceptedBody", DryRunPassed: "DryRunBody" };
const declaring = ["version", "booking-events-error", "batch-event", "create-client", "digest-of"];

/**
 * The client as partners copy it: one module without dependencies, and its types. JavaScript and not TypeScript, since a
 * partner's compiler would check our code by its own rules.
 */
export async function buildClientFiles(): Promise<Record<"booking-events.js" | "booking-events.d.ts", string>> {
  return { "booking-events.js": await buildModule(), "booking-events.d.ts": buildTypes() };
}

const introduction = `// Sends booking events, asks what became of them, and compares bookings. Copy booking-events.js into your project, and
// booking-events.d.ts beside it if you use TypeScript. It needs Node 20, a browser, Deno or an edge runtime, and no package.
`;

async function buildModule(): Promise<string> {
  const build = await rolldown({ input: fileURLToPath(new URL("index.ts", source)), platform: "neutral" });
  const { output } = await build.generate();
  await build.close();
  return `${introduction}${output[0].code.replaceAll(/^\/\/ ?(?:#(?:end)?region.*|\S+\.ts)\n/gm, "")}`;
}

function buildTypes(): string {
  const schemas: Record<string, Schema> = JSON.parse(JSON.stringify(buildOpenApi())).components.schemas;
  const named = bodies.map((name) => declare(namesInCode[name] ?? name, schemas[name] ?? {}));
  const counts = schemas["ReconciliationSummary"]?.properties?.["summary"] ?? {};
  const union = (values: readonly string[]) => values.map((value) => JSON.stringify(value)).join(" | ");
  const payload = "BookingInput | BookingReference";
  return [
    introduction,
    ...named,
    declare("ReconciliationCounts", counts),
    `export type EventKind = ${union(eventKinds)};\n`,
    `export type ReferenceKind = ${union(referenceKinds)};\n`,
    `export type BookingFieldName = ${union(bookingFields.map(({ name }) => name))};\n`,
    `export type PayloadValidation = { success: true; payload: ${payload} } | { success: false; violationList: Violation[] };\n`,
    ...declaring.map(declarationsOf),
  ].join("\n");
}

function declare(name: string, schema: Schema): string {
  const comment = schema.description === undefined ? "" : `/** ${schema.description} */\n`;
  return `${comment}export type ${name} = ${typeOf(schema)};\n`;
}

function typeOf(schema: Schema): string {
  const { $ref, oneOf = schema.anyOf, properties, type } = schema;
  if ($ref !== undefined) return nameOf($ref);
  if (properties !== undefined) return objectOf(schema);
  if (oneOf !== undefined) return oneOf.map(typeOf).join(" | ");
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (type === "array") return `Array<${typeOf(schema.items ?? {})}>`;
  if (type === "integer") return "number";
  return type ?? "unknown";
}

function nameOf(ref: string): string {
  const name = ref.slice(ref.lastIndexOf("/") + 1);
  if (!bodies.includes(name)) throw new Error(`The client's types lack ${name}.`);
  return namesInCode[name] ?? name;
}

function objectOf({ properties = {}, required = [], additionalProperties }: Schema): string {
  const members = Object.entries(properties).map(([name, member]) => {
    const comment = member.description === undefined ? "" : `  /** ${member.description} */\n`;
    const type = required.includes(name) ? `: ${typeOf(member)}` : `?: ${typeOf(member)} | undefined`;
    return `${comment}  ${/^\w+$/.test(name) ? name : JSON.stringify(name)}${type};\n`;
  });
  const others = additionalProperties === true ? "  [name: string]: unknown;\n" : "";
  return `{\n${members.join("")}${others}}`;
}

/** Of what a file exports, without its imports, whose types the file has too. */
function declarationsOf(name: string): string {
  const file = fileURLToPath(new URL(`${name}.ts`, source));
  const { code, errors } = isolatedDeclarationSync(file, readFileSync(file, "utf8"), { sourcemap: false });
  if (errors.length > 0) throw new Error(`${name}: ${JSON.stringify(errors)}`);
  return code.replaceAll(/^import [^;]*;\n/gm, "").replaceAll(/^export \{\};\n/gm, "");
}
