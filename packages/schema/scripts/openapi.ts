import { readFileSync } from "node:fs";
import type { JsonSchema } from "@valibot/to-json-schema";
import type { Answer } from "../src/answers/answer.ts";
import * as answerBodies from "../src/answers/answer-bodies.ts";
import * as answers from "../src/answers/answers.ts";
import { toBatchLine } from "../src/answers/batch-line.ts";
import * as lookupAnswers from "../src/answers/lookup-answers.ts";
import { idempotencyKeyPattern } from "../src/envelope/idempotency-key.ts";
import { type EventKind, eventKinds } from "../src/payload/event-kind.ts";
import { Violation } from "../src/payload/violation.ts";
import { Warning } from "../src/warnings/warning.ts";
import { buildJsonSchemas } from "./json-schemas.ts";
import { describeQuestionSchemas, describeQuestions, questionParameters } from "./openapi-questions.ts";
import { describeSchemas, schemaRef, withoutDialect } from "./openapi-schemas.ts";

/** Of the bytes of a body, unless the operator sets BODY_LIMIT_BYTES. */
const defaultBodyLimitBytes = 65_536;
const exampleEventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";

/** Every answer in the catalogue, with examples in place of what depends on the request. */
const exampleAnswers = {
  ...answers,
  accepted: answers.accepted(exampleEventId),
  dryRunPassed: answers.dryRunPassed(readExample("similar-names").expect.warnings),
  invalidData: answers.invalidData(readExample("invalid-in-many-ways").expect.violationList ?? []),
  malformedJson: answers.malformedJson({ line: 1, column: 42 }),
  wrongContentType: answers.wrongContentType({ line: 1, column: 42 }),
  repeatedJsonKey: answers.repeatedJsonKey({ line: 1, column: 42 }),
  askLookup: answers.askLookup(),
  wrongMethod: answers.wrongMethod("POST"),
  bodyTooLarge: answers.bodyTooLarge(defaultBodyLimitBytes),
  overRateLimit: answers.overRateLimit(1),
  quota: answers.quota(3_600),
  tooManyGuesses: answers.tooManyGuesses(60),
} satisfies Record<keyof typeof answers, Answer>;

/** Only batches get these, besides those of every event. */
const answersToBatches: Answer[] = [answers.alreadySendingBatch, answers.answersUnread, answers.invalidLine];

/** What to do about each status, as the partner guide says in more words. */
const statusMeanings: Record<number, string> = {
  200: "The event is stored durably and will be applied. After a dry run: the event would be accepted.",
  400: "The request or its body cannot be read. Correct it.",
  403: "The secret is invalid, has expired, or does not allow this operation. Stop, and ask us.",
  404: "There is no such path. Correct it.",
  405: "The path exists, but not with this method. Use POST.",
  408: "The request did not arrive in time. Send it again.",
  413: "The body is too large. Send a smaller one.",
  415: "The type or encoding of the body is not supported. Set Content-Type, and send the body uncompressed.",
  422: "The payload violates rules. Correct every violation that is listed.",
  429: "Too many requests or bytes, or too many invalid secrets from your address. Send it again after Retry-After.",
  431: "The URL and headers are too large. Send fewer or shorter headers.",
  500: "Something failed that should not have. Send the same request again later.",
  503: "The event could not be stored. Send the same request again after Retry-After.",
};

const operations = {
  create: {
    summary: "Create a booking",
    description: "A booking is new. Send the whole booking.",
    schema: "BookingInput",
    json: ["smallest-booking", "full-booking", "one-way-trip", "null-where-allowed"],
    form: ["form-encoded-booking"],
  },
  update: {
    summary: "Update a booking",
    description: "A booking has changed. Send the whole booking: fields that you omit are removed.",
    schema: "BookingInput",
    json: ["updated-booking", "date-time-with-offset"],
    form: ["form-encoded-booking"],
  },
  delete: {
    summary: "Delete a booking",
    description: "A booking is gone. Send its reference.",
    schema: "BookingReference",
    json: ["delete", "delete-by-consumer-reference"],
    form: ["delete-form-encoded"],
  },
} satisfies Record<EventKind, object>;

/** Returns the description of the HTTP interface as an OpenAPI 3.1 document. */
export function buildOpenApi() {
  return {
    openapi: "3.1.1",
    info: {
      title: "Booking events",
      version: readVersion(),
      description:
        "Report what happens to your bookings. Each request carries one event about one booking. We store it durably " +
        "before we answer 200. The reference at /docs has a guide.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The host that serves this document." }],
    tags: [
      { name: "Booking events", description: "One operation for each kind of event." },
      { name: "Questions", description: "What became of an event, and how your bookings stand." },
    ],
    // The secret is the last segment of the path, which OpenAPI cannot describe as a security scheme.
    security: [{}, { bearer: [] }],
    paths: {
      ...Object.fromEntries(eventKinds.map((kind) => [`/booking-event/${kind}/{secret}`, describePath(kind)])),
      "/booking-event/batch/{secret}": describeBatch(),
      ...describeQuestions({ describeResponse, sharedAnswers: answersByStatus() }),
    },
    components: {
      securitySchemes: { bearer },
      parameters: { ...parameters, ...questionParameters },
      headers,
      responses: describeResponses(),
      schemas: { ...describeAllSchemas(), ...describeBatchSchemas(), ...describeQuestionSchemas() },
    },
  };
}

function describePath(kind: EventKind) {
  const { summary, description, schema, json, form } = operations[kind];
  return {
    parameters: Object.keys(parameters).map((name) => ({ $ref: `#/components/parameters/${name}` })),
    post: {
      operationId: `${kind}Booking`,
      tags: ["Booking events"],
      summary,
      description,
      requestBody: {
        description: "The body is one flat object in UTF-8, of at most 64 KiB, 16 levels and 2,000 values.",
        required: true,
        content: {
          "application/json": { schema: schemaRef(schema), examples: describeExamples(json) },
          "application/x-www-form-urlencoded": { schema: schemaRef(`${schema}Form`), examples: describeExamples(form) },
        },
      },
      responses: Object.fromEntries(
        Object.keys(answersByStatus()).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  };
}

function describeBatch() {
  const ofRequest = ["400", "403", "404", "405", "408", "415", "429", "431", "500", "503"];
  const shared = ofRequest.map((status) => [status, { $ref: `#/components/responses/${status}` }]);
  const tooMany = [answers.overRateLimit(1), exampleAnswers.tooManyGuesses, answers.alreadySendingBatch];
  return {
    parameters: ["secret", "dryRun"].map((name) => ({ $ref: `#/components/parameters/${name}` })),
    post: {
      operationId: "sendBatch",
      tags: ["Booking events"],
      summary: "Send many events",
      description:
        "For first loads. Each line is one event, and is answered by one line, in order, with the status that the " +
        "event would have got alone. The answer begins while you send. After a line with status 408 or 503, or 403 " +
        "or 429 for your secret or quota, it ends: send that line and those after it again.",
      requestBody: {
        description: "NDJSON: one object like this in each line, of at most 64 KiB. There is no limit of lines.",
        required: true,
        content: {
          "application/x-ndjson": {
            schema: schemaRef("BatchLine"),
            examples: { create: { value: exampleLine } },
          },
        },
      },
      responses: {
        200: {
          ...describeResponse(200, [], "NDJSON: one object like this for each line that is not blank."),
          content: {
            "application/x-ndjson": {
              schema: schemaRef("BatchAnswer"),
              examples: Object.fromEntries(
                [
                  exampleAnswers.accepted,
                  exampleAnswers.invalidData,
                  answers.invalidLine,
                  answers.answersUnread,
                  answers.queueUnavailable,
                ].map((answer, index) => [answer.code, { value: JSON.parse(toBatchLine(index + 1, answer)) }]),
              ),
            },
          },
        },
        ...Object.fromEntries(shared),
        429: describeResponse(429, tooMany, "As for an event, or another batch of yours is under way."),
      },
    },
  };
}

const exampleLine = {
  kind: "create",
  payload: { consumerTripPartnerExternalReference: "TRIP-1" },
  idempotencyKey: "TRIP-1/version-1",
};

function describeBatchSchemas(): Record<string, object> {
  const kind = { type: "string", enum: eventKinds, description: "What happened to the booking." };
  const payload = {
    anyOf: [schemaRef("BookingInput"), schemaRef("BookingReference")],
    description: "As for the kind.",
  };
  const key = parameters.idempotencyKey;
  return {
    BatchLine: {
      type: "object",
      title: "BatchLine",
      description: "One event of a batch.",
      properties: { kind, payload, idempotencyKey: { ...key.schema, description: key.description } },
      required: ["kind", "payload"],
      additionalProperties: false,
    },
    BatchAnswer: {
      type: "object",
      title: "BatchAnswer",
      description: "What one event of a batch got: beside these members, those that it would have got alone.",
      properties: {
        line: { type: "integer", minimum: 1, description: "The number of the line. Blank lines count." },
        status: { type: "integer", description: "The status that the event would have got alone." },
        retryAfter: { type: "integer", description: "Seconds to wait before you send the line again." },
      },
      required: ["line", "status"],
      anyOf: ["Accepted", "DryRunPassed", "InvalidData", "Refusal"].map((name) => ({
        properties: describeAllSchemas()[name]?.properties,
        required: (describeAllSchemas()[name]?.required ?? []).filter((member) => member !== "success"),
      })),
    },
  };
}

const bearer = {
  type: "http",
  scheme: "bearer",
  description:
    "In place of the secret in the path, for senders whose proxies log paths. Leave it out of the path with the slash " +
    "before it: POST /booking-event/create. In both places at once, it is refused.",
};

const parameters = {
  secret: {
    name: "secret",
    in: "path",
    required: true,
    description:
      "Your secret. Whoever has it can send events in your name: keep the URL out of logs and reports. Or send it in a header: see the security scheme.",
    schema: { type: "string", format: "password", minLength: 1 },
    example: "your-secret",
  },
  idempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Names this event among the booking's events. A retry with the same key changes nothing. Always send it.",
    schema: { type: "string", pattern: idempotencyKeyPattern.source },
    example: "TRIP-1/version-3",
  },
  webhookId: {
    name: "webhook-id",
    in: "header",
    description: "Another name of Idempotency-Key. It is read only if there is no Idempotency-Key.",
    schema: { type: "string", pattern: idempotencyKeyPattern.source },
    example: "TRIP-1/version-3",
  },
  traceparent: {
    name: "traceparent",
    in: "header",
    description: "The trace that the request belongs to, as in W3C Trace Context. A malformed one is ignored.",
    schema: { type: "string" },
    example: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  },
  dryRun: {
    name: "X-Dry-Run",
    in: "header",
    description:
      "If true, 1 or yes, the secret, headers and payload are checked, and nothing is stored. Case does not matter.",
    schema: {
      type: "string",
      pattern: "^([Tt][Rr][Uu][Ee]|1|[Yy][Ee][Ss]|[Ff][Aa][Ll][Ss][Ee]|0|[Nn][Oo])?$",
      default: "false",
    },
    example: "true",
  },
};

const headers = {
  "X-Request-Id": {
    description: "Names the request. Quote it when you ask us. If the event was accepted, this is its eventId.",
    schema: { type: "string", format: "uuid" },
    example: exampleEventId,
  },
  "Cache-Control": {
    description: "Answers to events must not be stored.",
    schema: { type: "string", const: "no-store" },
    example: "no-store",
  },
  "RateLimit-Policy": {
    description: "After a valid secret: your rate limit. Here 400 requests in 2 s.",
    schema: { type: "string" },
    example: '"partner";q=400;w=2',
  },
  RateLimit: {
    description: "After a valid secret: what is left of your rate limit, and in how many seconds it is full again.",
    schema: { type: "string" },
    example: '"partner";r=398;t=1',
  },
  "Retry-After": {
    description: "Seconds to wait before you send the request again.",
    schema: { type: "string", pattern: "^[0-9]+$" },
    example: "5",
  },
  Allow: {
    description: "The methods that the path has.",
    schema: { type: "string" },
    example: "POST",
  },
};

/** Sent with every answer. The others depend on the answer. */
const headersOfEveryAnswer = ["X-Request-Id", "Cache-Control"] as const;
const rateLimitHeaders = ["RateLimit-Policy", "RateLimit"] as const;
/** Sent before the secret is checked, or instead of checking it. */
const statusesWithoutPartner = new Set([403, 404, 405, 408, 431]);
/** Sent after the secret was checked, unlike the other answers of their status. */
const codesForPartners = new Set([lookupAnswers.noSuchEvent.code, lookupAnswers.noSuchBooking.code]);

function answersByStatus(): Record<string, Answer[]> {
  const ofEvents = Object.values(exampleAnswers).filter((answer) => !answersToBatches.includes(answer));
  const byStatus = Object.groupBy(ofEvents, ({ status }) => status);
  return byStatus as Record<string, Answer[]>;
}

function describeResponses() {
  return Object.fromEntries(
    Object.entries(answersByStatus()).map(([status, each]) => [status, describeResponse(Number(status), each)]),
  );
}

function describeResponse(status: number, each: readonly Answer[], description = statusMeanings[status]) {
  if (description === undefined) throw new Error(`Status ${status} has no description.`);
  const ofAnswers = each.flatMap((answer) => Object.keys(answer.headers ?? {})).filter((name) => name in headers);
  const isForPartner = !statusesWithoutPartner.has(status) || each.some(({ code }) => codesForPartners.has(code));
  const ofPartner = isForPartner ? rateLimitHeaders : [];
  const names = new Set([...headersOfEveryAnswer, ...ofPartner, ...ofAnswers]);
  return {
    description,
    headers: Object.fromEntries([...names].map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    content: {
      "application/json": {
        schema: schemaOfStatus(status, each),
        examples: Object.fromEntries(each.map(({ code, body }) => [code, { value: JSON.parse(body) }])),
      },
    },
  };
}

function schemaOfStatus(status: number, each: readonly Answer[]) {
  if (status === 200) return { oneOf: [schemaRef("Accepted"), schemaRef("DryRunPassed")] };
  // An invalid list is a refusal with a list, so a client that knows only refusals understands it.
  if (each.some(({ code }) => code === "invalid-list-line"))
    return { anyOf: [schemaRef("InvalidList"), schemaRef("Refusal")] };
  return schemaRef(status === 422 ? "InvalidData" : "Refusal");
}

function describeAllSchemas(): Record<string, JsonSchema> {
  const payloads = buildJsonSchemas();
  const booking = withoutDialect(payloads["booking-input.json"]);
  const reference = withoutDialect(payloads["booking-reference.json"]);
  return {
    BookingInput: booking,
    BookingInputForm: toForm(booking),
    BookingReference: reference,
    BookingReferenceForm: toForm(reference),
    ...describeSchemas("answers/answer-bodies.ts", answerBodies, titlesOfBodies),
    ...describeSchemas("payload/violation.ts", { Violation }),
    ...describeSchemas("warnings/warning.ts", { Warning }),
  };
}

const titlesOfBodies = {
  AcceptedBody: "Accepted",
  DryRunBody: "DryRunPassed",
  RefusalBody: "Refusal",
  InvalidDataBody: "InvalidData",
  InvalidListBody: "InvalidList",
} satisfies Record<keyof typeof answerBodies, string>;

/** The same payload as a form, in which every value is a string, and null cannot be sent. */
function toForm(schema: JsonSchema): JsonSchema {
  const properties = Object.entries(schema.properties ?? {}).map(([name, property]) => [name, toText(property)]);
  return {
    ...schema,
    title: `${schema.title}Form`,
    description: `${schema.description} As a form, every value is a string. Leave out what has no value.`,
    properties: Object.fromEntries(properties),
    additionalProperties: { type: "string" },
  };
}

function toText(property: JsonSchema | boolean): JsonSchema {
  const { anyOf = [], ...rest } = Object(property) as JsonSchema;
  const [text] = anyOf.filter((each) => typeof each === "object" && each.type !== "null");
  return { ...rest, type: "string", ...Object(text) };
}

function describeExamples(names: readonly string[]) {
  return Object.fromEntries(
    names.map((name) => {
      const { description, payload } = readExample(name);
      return [name, { summary: description, value: payload }];
    }),
  );
}

function readExample(name: string): {
  description: string;
  payload: object;
  expect: { violationList?: Violation[]; warnings?: Warning[] };
} {
  return JSON.parse(readFileSync(new URL(`../examples/${name}.json`, import.meta.url), "utf8"));
}

function readVersion(): string {
  return JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version;
}
