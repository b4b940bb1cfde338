import { isDeepStrictEqual } from "node:util";

/** What the comparison reads of an OpenAPI document. */
export interface OpenApi {
  paths: Record<string, Record<string, unknown>>;
  components: Record<string, Record<string, unknown>>;
}

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  [keyword: string]: unknown;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
}
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
}
type Content = Record<string, { schema: Schema }>;

/** A request must not be refused that was accepted, and an answer must not hold what no answer held before. */
type Direction = "request" | "answer";

interface Place {
  direction: Direction;
  name: string;
  /** Within a further rule, whose properties are those of the schema itself. */
  isRule?: true;
}

const methods = ["get", "post", "put", "patch", "delete"];

/**
 * Names each change that could break a partner's program, such as `BookingInput.consumerPhone: refuses null now`.
 *
 * It may name a change that breaks nothing, such as an equivalent pattern: then say so in the changelog of the contract.
 * New optional fields, operations, statuses and members of answers are no such changes, although a field may have been
 * sent as an unlisted one with another type.
 */
export function findBreakingChanges(before: OpenApi, after: OpenApi): string[] {
  const comparison = new Comparison(before, after);
  const found = Object.entries(before.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      if (item[method] === undefined) return [];
      const name = `${method.toUpperCase()} ${path}`;
      const now = after.paths[path];
      if (now?.[method] === undefined) return [`${name}: was removed`];
      return comparison.compareOperations(withParameters(item, method), withParameters(now, method), name);
    }),
  );
  return [...new Set(found)];
}

/** Parameters of a path apply to each of its operations. */
function withParameters(item: Record<string, unknown>, method: string): Operation {
  const operation = item[method] as Operation;
  return {
    ...operation,
    parameters: [...((item["parameters"] as Parameter[]) ?? []), ...(operation.parameters ?? [])],
  };
}

class Comparison {
  readonly #before: OpenApi;
  readonly #after: OpenApi;

  constructor(before: OpenApi, after: OpenApi) {
    this.#before = before;
    this.#after = after;
  }

  compareOperations(before: Operation, after: Operation, name: string): string[] {
    const request = { direction: "request", name } as const;
    return [
      ...this.#compareParameters(before.parameters ?? [], after.parameters ?? [], name),
      ...this.#compareContent(before.requestBody?.content ?? {}, after.requestBody?.content ?? {}, request),
      ...Object.entries(before.responses).flatMap(([status, response]) => {
        const { content: was = {} } = resolve(this.#before, response);
        const { content: is = {} } = resolve(this.#after, after.responses[status] ?? {});
        return this.#compareContent(was, is, { direction: "answer", name: `${name} ${status}` });
      }),
    ];
  }

  #compareParameters(before: Parameter[], after: Parameter[], name: string): string[] {
    const known = new Map(before.map((each) => resolve(this.#before, each)).map((each) => [each.name, each]));
    const now = after.map((each) => resolve(this.#after, each));
    const names = new Set(now.map((each) => each.name));
    const removed = [...known.keys()].filter((each) => !names.has(each)).map((each) => `${name} ${each}: was removed`);
    const changed = now.flatMap((parameter) => {
      const was = known.get(parameter.name);
      const place = `${name} ${parameter.name}`;
      const isNewlyRequired = parameter.required === true && was?.required !== true;
      return [
        ...(isNewlyRequired ? [`${place}: is required now`] : []),
        ...(was === undefined
          ? []
          : this.#compare(was.schema, parameter.schema, { direction: "request", name: place })),
      ];
    });
    return [...removed, ...changed];
  }

  #compareContent(before: Content, after: Content, place: Place): string[] {
    return Object.entries(before).flatMap(([type, { schema }]) => {
      const now = after[type];
      if (now === undefined) return [`${place.name} ${type}: was removed`];
      return this.#compare(schema, now.schema, { ...place, name: `${place.name} ${type}` });
    });
  }

  #compare(before: Schema, after: Schema, place: Place): string[] {
    // A shared schema is named once, and not for each operation that uses it.
    const shared = typeof before["$ref"] === "string" ? before["$ref"].split("/").at(-1) : undefined;
    const at = { ...place, name: shared ?? place.name };
    const [was, is] = [resolve(this.#before, before), resolve(this.#after, after)];
    const [wasAny, isAny] = [alternativesOf(was), alternativesOf(is)];
    const [onlyWas, onlyIs] = [wasAny[0], isAny[0]];
    if (onlyWas && onlyIs && wasAny.length + isAny.length === 2) return this.#compareOne(onlyWas, onlyIs, at);
    return this.#compareAlternatives(wasAny, isAny, at);
  }

  /** Each alternative that may occur must be covered by one that the other side expects. */
  #compareAlternatives(before: Schema[], after: Schema[], place: Place): string[] {
    const isRequest = place.direction === "request";
    const [occurring, expected] = isRequest ? [before, after] : [after, before];
    return occurring.flatMap((alternative) => {
      const faults = expected.map((other) => {
        return isRequest ? this.#compare(alternative, other, place) : this.#compare(other, alternative, place);
      });
      return faults.toSorted((one, other) => one.length - other.length)[0] ?? [];
    });
  }

  #compareOne(before: Schema, after: Schema, place: Place): string[] {
    const [wide, narrow] = place.direction === "request" ? [before, after] : [after, before];
    const typeFaults = compareTypes(wide, narrow, place);
    // Of a value with another type, all other rules would differ too.
    if (typeFaults.length > 0) return typeFaults;
    return [
      ...this.#compareProperties(before, after, place),
      ...compareRequired(wide, narrow, place),
      ...this.#compareUnlisted(before, after, place),
      ...this.#compareItems(before, after, place),
      ...this.#compareFurtherRules(before, after, place),
      ...compareKeywords(before, after, place),
    ];
  }

  #compareProperties(before: Schema, after: Schema, { name, ...place }: Place): string[] {
    return Object.entries(before.properties ?? {}).flatMap(([property, schema]) => {
      const now = after.properties?.[property] ?? (place.isRule ? {} : undefined);
      const at = { ...place, name: `${name}.${property}` };
      return now === undefined ? [`${at.name}: was removed`] : this.#compare(schema, now, at);
    });
  }

  #compareUnlisted(before: Schema, after: Schema, place: Place): string[] {
    const { additionalProperties: was = true } = before;
    const { additionalProperties: is = true } = after;
    const [wide, narrow] = place.direction === "request" ? [was, is] : [is, was];
    if (narrow === true || wide === false) return [];
    if (narrow === false) return [`${place.name}: ${words(place).unlistedDiffer}`];
    const name = `${place.name}.*`;
    return this.#compare(was === true ? {} : Object(was), is === true ? {} : Object(is), { ...place, name });
  }

  #compareItems({ items: was }: Schema, { items: is }: Schema, place: Place): string[] {
    if (was === undefined && is === undefined) return [];
    return this.#compare(was ?? {}, is ?? {}, { ...place, name: `${place.name}[]` });
  }

  /** A rule of `allOf` is new if no earlier rule implied it. */
  #compareFurtherRules(before: Schema, after: Schema, place: Place): string[] {
    const [rulesBefore, rulesAfter] = [furtherRulesOf(before), furtherRulesOf(after)];
    const isRequest = place.direction === "request";
    const [wide, narrow] = isRequest ? [rulesBefore, rulesAfter] : [rulesAfter, rulesBefore];
    const at = { ...place, isRule: true } as const;
    return narrow.flatMap((rule) => {
      const faults = (wide.length === 0 ? [{}] : wide).map((other) => {
        return isRequest ? this.#compare(other, rule, at) : this.#compare(rule, other, at);
      });
      return faults.toSorted((one, other) => one.length - other.length)[0] ?? [];
    });
  }
}

function resolve<Referring>(document: OpenApi, value: Referring): Referring {
  const { $ref } = Object(value) as { $ref?: string };
  if ($ref === undefined) return value;
  const [, , kind = "", name = ""] = $ref.split("/");
  const target = document.components[kind]?.[name];
  if (target === undefined) throw new Error(`The document has no ${$ref}.`);
  return target as Referring;
}

/** They describe a value and refuse none. */
const annotations = new Set(["title", "description", "examples", "example", "deprecated", "default", "$schema"]);
/** Compared by functions of their own. */
const structure = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "anyOf",
  "oneOf",
  "allOf",
]);

function constraintsOf(schema: Schema): string[] {
  return Object.keys(schema).filter((keyword) => !annotations.has(keyword));
}

/** The schemas of which a value matches one: a nullable string has two. */
function alternativesOf(schema: Schema): Schema[] {
  const { anyOf, oneOf, type } = schema;
  if (constraintsOf(schema).length === 1 && (anyOf ?? oneOf) !== undefined) return anyOf ?? oneOf ?? [];
  return Array.isArray(type) ? type.map((each) => ({ ...schema, type: each })) : [schema];
}

function furtherRulesOf({ allOf = [], anyOf, oneOf }: Schema): Schema[] {
  return [...allOf, ...(anyOf === undefined ? [] : [{ anyOf }]), ...(oneOf === undefined ? [] : [{ oneOf }])];
}

function compareTypes(wide: Schema, narrow: Schema, place: Place): string[] {
  if (narrow.type === undefined || narrow.type === wide.type) return [];
  // Every integer is a number.
  if (narrow.type === "number" && wide.type === "integer") return [];
  const implied = "const" in wide ? typeof wide.const : undefined;
  if (implied === narrow.type) return [];
  return [`${place.name}: ${words(place).typeDiffers(String(wide.type ?? "any type"))}`];
}

function compareRequired(wide: Schema, narrow: Schema, place: Place): string[] {
  const already = new Set(wide.required);
  return (narrow.required ?? [])
    .filter((name) => !already.has(name))
    .map((name) => `${place.name}.${name}: ${words(place).requiredDiffers}`);
}

function compareKeywords(before: Schema, after: Schema, place: Place): string[] {
  const keywords = new Set([...constraintsOf(before), ...constraintsOf(after)].filter((each) => !structure.has(each)));
  return [...keywords].flatMap((keyword) => {
    const [was, is] = [before[keyword], after[keyword]];
    const isBreaking = place.direction === "request" ? isNarrower(keyword, was, is) : isNarrower(keyword, is, was);
    return isBreaking ? [`${place.name}: ${keyword} was ${show(was)}, and is ${show(is)} now`] : [];
  });
}

/** Whether a keyword of the second schema refuses values that it accepts in the first. Undefined: it is absent. */
function isNarrower(keyword: string, wide: unknown, narrow: unknown): boolean {
  if (narrow === undefined || isDeepStrictEqual(wide, narrow)) return false;
  if (wide === undefined) return true;
  if (keyword.startsWith("min")) return Number(narrow) > Number(wide);
  if (keyword.startsWith("max")) return Number(narrow) < Number(wide);
  if (keyword === "enum" && Array.isArray(wide) && Array.isArray(narrow)) {
    return !wide.every((value) => narrow.some((other) => isDeepStrictEqual(value, other)));
  }
  return true;
}

function words({ direction }: Place) {
  return direction === "request"
    ? { typeDiffers: (type: string) => `refuses ${type} now`, ...requestWords }
    : { typeDiffers: (type: string) => `may be ${type} now`, ...answerWords };
}

const requestWords = { requiredDiffers: "is required now", unlistedDiffer: "refuses unlisted fields now" };
const answerWords = { requiredDiffers: "may be missing now", unlistedDiffer: "may have unlisted members now" };

const show = (value: unknown) => (value === undefined ? "absent" : JSON.stringify(value));
