/** What the pages use of the OpenAPI document. */
export interface OpenApi {
  info: { title: string; version: string; description: string };
  paths: Record<string, PathItem>;
  components: {
    parameters: Record<string, Parameter>;
    headers: Record<string, Described>;
    responses: Record<string, Response>;
    schemas: Record<string, Schema>;
  };
}

interface PathItem {
  parameters: { $ref: string }[];
  post?: Operation;
  get?: Operation;
}

interface Described {
  description: string;
  schema: Schema;
  example: string;
}

interface Parameter extends Described {
  name: string;
  in: string;
  required?: boolean;
}

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  requestBody?: Body;
  responses: Record<string, Response | { $ref: string }>;
}

interface Body {
  description: string;
  content: Record<string, { examples?: Record<string, Example> }>;
}

export interface Example {
  summary?: string;
  value: { message?: string };
}

export interface Response extends Body {
  headers: object;
}

export interface Schema {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  const?: unknown;
  enum?: string[];
  not?: object;
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  examples?: string[];
  deprecated?: boolean;
  required?: string[];
  properties?: Record<string, Schema>;
}

/** The codes of refusals that an answer or a line of it may have, each with its example. */
export function listCodes({ content }: Response): [code: string, example: Example][] {
  const { examples = {} } = content["application/json"] ?? content["application/x-ndjson"] ?? {};
  return Object.entries(examples).filter(([, { value }]) => value.message !== undefined);
}

/** The places on the reference page that a name in `code` leads to, wherever it is mentioned. */
export function findAnchors({ components, paths }: OpenApi): Map<string, string> {
  const answers = [
    ...Object.values(components.responses),
    ...Object.values(paths).flatMap(({ get, post }) => Object.values((get ?? post)?.responses ?? {})),
  ].filter((response) => "content" in response);
  return new Map([
    ...answers.flatMap(listCodes).map(([code]): [string, string] => [code, `code-${code}`]),
    ...Object.keys(components.headers).map((name): [string, string] => [name, `header-${name}`]),
    ...Object.values(components.parameters).map(({ name }): [string, string] => [name, `parameter-${name}`]),
    ...listFields(components.schemas["BookingInput"]).map(([name]): [string, string] => [name, `field-${name}`]),
  ]);
}

function listFields(schema: Schema | undefined): [name: string, field: Schema][] {
  return Object.entries(schema?.properties ?? {});
}

export function describeType(schema: Schema): string {
  const { $ref, type = "", format, minLength, maxLength, items, anyOf } = schema;
  if (schema.not !== undefined) return "retired: refused";
  if (anyOf !== undefined) return anyOf.map(describeType).join(" or ");
  if ($ref !== undefined) return $ref.replace(/^.*\//, "");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (items !== undefined) return `${type} of ${describeType(items)}`;
  return `${type}${describeLength(minLength, maxLength)}${format === undefined ? "" : `, format ${format}`}`;
}

function describeLength(min = 0, max?: number): string {
  if (max === undefined) return "";
  const most = max.toLocaleString("en");
  return min === 0 ? ` of up to ${most} characters` : ` of ${min} to ${most} characters`;
}
