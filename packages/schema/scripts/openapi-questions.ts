import { isDeepStrictEqual } from "node:util";
import type { JsonSchema } from "@valibot/to-json-schema";
import type * as v from "valibot";
import * as activityBodies from "../src/answers/activity.ts";
import type { Answer } from "../src/answers/answer.ts";
import * as answers from "../src/answers/answers.ts";
import { ListViolation } from "../src/answers/list-violations.ts";
import * as lookupAnswers from "../src/answers/lookup-answers.ts";
import {
  type BookingStatus,
  bookingBodies,
  Difference,
  ListedReference,
  type Receipt,
  ReconciliationSummary,
  receiptBodies,
} from "../src/answers/lookup-bodies.ts";
import { Readings } from "../src/answers/readings.ts";
import { referenceKinds } from "../src/payload/reference-rule.ts";
import { describeSchema, describeSchemas, schemaRef } from "./openapi-schemas.ts";

/** The operations of lookup, the process that answers partners' questions. */

const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const laterEventId = "01a1fb0c-d72c-7345-a7ee-38bfa851309c";
const digest = "5f0b6d3a7c1e4f28b9d05a6c7e8f9012a3b4c5d6e7f8091a2b3c4d5e6f708192";
const updatedAt = "2027-05-02T09:30:11.020Z";

/** One of each, by the name of its body. */
const receipts: { [Status in Receipt["status"]]: Extract<Receipt, { status: Status }> } = {
  waiting: { eventId, status: "waiting" },
  applied: { eventId, status: "applied", outcome: "created", decidedBy: laterEventId },
  duplicate: { eventId: laterEventId, status: "duplicate", duplicateOf: eventId, decidedBy: eventId },
  superseded: { eventId, status: "superseded", decidedBy: laterEventId, warnings: ["key-reused"] },
  failed: { eventId, status: "failed", code: "22P05" },
  expired: { eventId, status: "expired" },
  erased: { eventId, status: "erased" },
};
const bookings: { [State in BookingStatus["state"]]: Extract<BookingStatus, { state: State }> } = {
  active: {
    state: "active",
    revision: 3,
    decidedBy: eventId,
    updatedAt,
    digest,
    readings: {
      consumerPhone: "+442071838750",
      consumerPhoneIsAssumed: false,
      consumerTripArrivalDate: "2027-06-14",
      consumerTripArrivalAt: null,
    },
  },
  deleted: { state: "deleted", revision: 4, decidedBy: laterEventId, updatedAt },
  erased: { state: "erased" },
};
const differences: Record<string, Difference | ReconciliationSummary> = {
  different: { reference: "TRIP-1", result: "different", updatedAt },
  missing: { reference: "C-7", referenceKind: "consumer", result: "missing" },
  summary: {
    summary: { references: 3, same: 1, missing: 1, different: 1, "deleted-here": 0, erased: 0, unknown: 0 },
  },
};

const activity: activityBodies.Activity = {
  partner: "acme",
  at: "2027-05-02T09:41:07.310Z",
  from: "2027-05-02T09:00:00.000Z",
  until: "2027-05-02T09:41:07.102Z",
  isHeld: false,
  waiting: { events: 1, oldestEventId: laterEventId, oldestAt: "2027-05-02T09:41:06.912Z", isComplete: true },
  hours: [
    {
      at: "2027-05-02T09:00:00.000Z",
      answers: [
        { status: 200, code: "accepted", count: 212 },
        { status: 422, code: "invalid-data", count: 3 },
      ],
      outcomes: { created: 40, updated: 170, duplicate: 1 },
      isSample: false,
    },
  ],
  refusals: [
    {
      requestId: eventId,
      at: updatedAt,
      secretId: "s2",
      kind: "create",
      status: 422,
      code: "invalid-data",
      violations: ["consumerPhone:null"],
    },
  ],
  violations: [
    {
      field: "consumerPhone",
      code: "null",
      advice: "Must be a string of up to 8,192 characters; got null. Omit the field if you have no value.",
      count: 3,
      firstAt: updatedAt,
      lastAt: updatedAt,
      lastRequestId: eventId,
    },
  ],
  warnings: [
    {
      field: "consumerTripArrivalDate",
      code: "no-time-zone",
      advice:
        "The day counts as written, but the moment is unknown. Send the day alone, such as 2026-06-14, or the time with " +
        "its zone, such as 2026-06-14T07:27:17+02:00.",
      count: 17,
      firstAt: updatedAt,
      lastAt: updatedAt,
      lastRequestId: laterEventId,
    },
  ],
  notices: [{ code: "key-reused", count: 2, lastEventId: laterEventId }],
  failed: [{ eventId, code: "22P05", failedAt: updatedAt }],
  secrets: [
    { id: "s1", isInUse: false, isValid: true, expiresAt: "2027-05-09T00:00:00Z", lastUsedAt: updatedAt },
    { id: "s2", isInUse: true, isValid: true, expiresAt: null, lastUsedAt: updatedAt },
  ],
  limits: {
    perSecond: 200,
    burst: 400,
    available: 398,
    bytesPerDay: 5_000_000_000,
    bytesToday: 301_442,
    dayEndsAt: "2027-05-03T00:00:00.000Z",
  },
};

const wrongLines: ListViolation[] = [
  { message: "Line 2: it is not valid JSON.", code: "malformed", propertyPath: ["2"] },
  { message: "Line 7: digest must have 64 hexadecimal digits.", code: "malformed", propertyPath: ["7", "digest"] },
];

const receiptMeanings: Record<Receipt["status"], string> = {
  waiting: "The event is stored, and will be applied.",
  applied:
    "The event was applied. If another event decides the booking now, that one came later. If none does, the " +
    "booking is no longer stored.",
  duplicate: "The event repeats an earlier one, and changed nothing.",
  superseded: "A later event was applied first, so this one changed nothing.",
  failed: "We could not apply the event.",
  expired: "The event was too old to be applied.",
  erased: "We erased the booking on request.",
};
const bookingMeanings: Record<BookingStatus["state"], string> = {
  active: "The booking is active.",
  deleted: "The booking is deleted.",
  erased: "We erased the booking on request. Do not send it again.",
};

interface Question {
  method: "get" | "post";
  path: string;
  operationId: string;
  summary: string;
  description: string;
  parameters: string[];
  requestBody?: object;
  /** The content of the 200. */
  content: object;
  meanings: Record<number, string>;
  refusals: Answer[];
}

/** Any question may get these, besides those that depend on it. */
const refusalsOfEveryQuestion = [
  ...[answers.malformedHttp, answers.repeatedHost, answers.invalidSecret, lookupAnswers.noSuchPath],
  ...[answers.tooSlow, answers.overRateLimit(1), answers.tooManyGuesses(60), answers.headersTooLarge],
  ...[answers.internalError, answers.partnersUnknown, answers.shuttingDown, lookupAnswers.lookupUnavailable],
];
const meaningsForEveryQuestion = {
  404: "There is no such path. Correct it.",
  503: "The question cannot be answered at the moment. Send the same request again after Retry-After.",
};
const onlyGet = { 405: "The path exists, but not with this method. Use GET." };

const questions: Question[] = [
  {
    method: "get",
    path: "/booking-event/receipt/{secret}/{eventId}",
    operationId: "findReceipt",
    summary: "Find out what became of an event",
    description: "The answer is current from the event's 200 on.",
    parameters: ["eventId"],
    content: jsonContent("Receipt", receipts),
    meanings: {
      ...onlyGet,
      200: "What became of the event.",
      404: "You have no such event, it has left our log, or there is no such path.",
    },
    refusals: [lookupAnswers.noSuchEvent, answers.wrongMethod("GET", "HEAD")],
  },
  {
    method: "get",
    path: "/booking-event/booking/{secret}",
    operationId: "findBooking",
    summary: "Find out how a booking stands",
    description:
      "The answer has a digest of the content and, on request, what we read of its fields. Waiting events do not count " +
      "yet.",
    parameters: ["reference", "referenceKind", "fields"],
    content: jsonContent("BookingStatus", bookings),
    meanings: {
      ...onlyGet,
      200: "How the booking stands.",
      404: "You have no such booking, or there is no such path.",
    },
    refusals: [
      ...[lookupAnswers.noSuchBooking, lookupAnswers.invalidQuery, lookupAnswers.invalidReference],
      ...[lookupAnswers.invalidFields, lookupAnswers.readingsOff, answers.wrongMethod("GET", "HEAD")],
    ],
  },
  {
    method: "post",
    path: "/booking-event/reconcile/{secret}",
    operationId: "reconcileBookings",
    summary: "Compare all bookings",
    description: "Send a list of the bookings that are active at your end. The answer names each difference.",
    parameters: ["allowEmpty"],
    requestBody: {
      description:
        "NDJSON: one object like this in each line. At most 2,000,000 lines of 16 KiB each. Further members are " +
        "ignored, and a booking that is listed twice counts once. An empty list is refused unless allowEmpty is true.",
      required: true,
      content: {
        "application/x-ndjson": {
          schema: schemaRef("ListedReference"),
          examples: toExamples({
            "with-digest": { reference: "TRIP-1", digest },
            "without-digest": { reference: "C-7", referenceKind: "consumer" },
          } satisfies Record<string, ListedReference>),
        },
      },
    },
    content: {
      "application/x-ndjson": {
        schema: { oneOf: [schemaRef("Difference"), schemaRef("ReconciliationSummary")] },
        examples: toExamples(differences),
      },
    },
    meanings: {
      400: "The list is empty, or lines of it are wrong: up to 50 are named. Or the request cannot be read.",
      200:
        "NDJSON: one object like this in each line. The last one is the summary. If it is missing, the answer " +
        "was cut off.",
      413: "The list, or its answer, is too long. Send fewer references.",
      429: "Too many requests, or another list of yours is being compared. Send it again after Retry-After.",
    },
    refusals: [
      ...[lookupAnswers.invalidListLine(wrongLines), lookupAnswers.emptyList, answers.wrongMethod("POST")],
      ...[lookupAnswers.listTooLong(2_000_000), lookupAnswers.tooManyDifferences, lookupAnswers.unsupportedType],
      ...[answers.unsupportedEncoding, lookupAnswers.alreadyReconciling, answers.overloaded],
      lookupAnswers.invalidQuery,
    ],
  },
  {
    method: "get",
    path: "/booking-event/activity/{secret}",
    operationId: "findActivity",
    summary: "See what you have sent, and what came of it",
    description:
      "Names of fields and codes, never values. Requests that were refused while our storage was down may be missing. " +
      "The answer may be 5 s old.",
    parameters: ["day"],
    content: jsonContent("Activity", { activity }),
    meanings: { ...onlyGet, 200: "Your events, refusals, warnings, secrets and limits." },
    refusals: [lookupAnswers.invalidQuery, lookupAnswers.invalidDay, answers.wrongMethod("GET", "HEAD")],
  },
];

export const questionParameters = {
  day: {
    name: "day",
    in: "query",
    description: "One of the last seven days, in UTC. Default: the last 48 hours.",
    schema: { type: "string", format: "date" },
    example: "2027-05-02",
  },
  eventId: {
    name: "eventId",
    in: "path",
    required: true,
    description: "The event's id, as in the answer to the event.",
    schema: { type: "string", format: "uuid" },
    example: eventId,
  },
  reference: {
    name: "reference",
    in: "query",
    required: true,
    description: "The reference that identifies the booking.",
    schema: { type: "string", minLength: 1 },
    example: "TRIP-1",
  },
  referenceKind: {
    name: "referenceKind",
    in: "query",
    description: "Which of the two references it is.",
    schema: { type: "string", enum: referenceKinds, default: "trip" },
    example: "consumer",
  },
  fields: {
    name: "fields",
    in: "query",
    description:
      "Fields of which you want to see what we read, separated by commas, or all. The answer then has readings. An " +
      "operator may switch this off.",
    schema: { type: "string" },
    example: "consumerPhone,consumerTripArrivalDate",
  },
  allowEmpty: {
    name: "allowEmpty",
    in: "query",
    description: "true: you have no active booking, so the list may be empty.",
    schema: { type: "string", enum: ["true", "false"], default: "false" },
    example: "true",
  },
};

/**
 * @param options.describeResponse describes all answers of a status
 * @param options.sharedAnswers by their status, those that the document describes already
 */
export function describeQuestions(options: {
  describeResponse: (status: number, each: readonly Answer[], description?: string) => object;
  sharedAnswers: Record<string, Answer[]>;
}) {
  return Object.fromEntries(
    questions.map(({ method, path, parameters, content, meanings, refusals, ...about }) => [
      path,
      {
        parameters: ["secret", ...parameters].map((name) => ({ $ref: `#/components/parameters/${name}` })),
        [method]: {
          ...about,
          tags: ["Questions"],
          responses: describeResponses({ content, meanings, refusals }, options),
        },
      },
    ]),
  );
}

function describeResponses(
  { content, meanings, refusals }: Pick<Question, "content" | "meanings" | "refusals">,
  { describeResponse, sharedAnswers }: Parameters<typeof describeQuestions>[0],
) {
  const byStatus = Object.groupBy([...refusals, ...refusalsOfEveryQuestion], ({ status }) => status);
  const meaningOf = (status: number) => ({ ...meaningsForEveryQuestion, ...meanings })[status];
  const described = Object.entries(byStatus).map(([status, each = []]) => [
    status,
    haveSameBodies(each, sharedAnswers[status])
      ? { $ref: `#/components/responses/${status}` }
      : describeResponse(Number(status), each, meaningOf(Number(status))),
  ]);
  const found = { ...describeResponse(200, [], meaningOf(200)), content };
  return { 200: found, ...Object.fromEntries(described) };
}

function haveSameBodies(some: readonly Answer[], others: readonly Answer[] = []): boolean {
  return isDeepStrictEqual(new Set(some.map(({ body }) => body)), new Set(others.map(({ body }) => body)));
}

export function describeQuestionSchemas(): Record<string, JsonSchema> {
  return {
    Receipt: oneOf("Receipt", "What became of an event.", receiptBodies, receiptMeanings),
    ...describeSchemas("answers/activity.ts", activityBodies),
    BookingStatus: oneOf("BookingStatus", "How a booking stands.", bookingBodies, bookingMeanings),
    ...describeSchemas("answers/readings.ts", { Readings }),
    ...describeSchemas("answers/list-violations.ts", { ListViolation }),
    ...describeSchemas(lookupBodies, { ListedReference, Difference, ReconciliationSummary }),
  };
}

const lookupBodies = "answers/lookup-bodies.ts";

function oneOf<Name extends string>(
  title: string,
  description: string,
  bodies: Record<Name, v.GenericSchema>,
  meanings: Record<Name, string>,
): JsonSchema {
  const alternatives = Object.keys(bodies) as Name[];
  const described = alternatives.map((name) =>
    describeSchema(lookupBodies, bodies[name], { title: name, description: meanings[name] }),
  );
  return { title, description, oneOf: described };
}

function jsonContent(schemaName: string, examples: Record<string, object>) {
  return { "application/json": { schema: schemaRef(schemaName), examples: toExamples(examples) } };
}

function toExamples(values: Record<string, object>) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]));
}
