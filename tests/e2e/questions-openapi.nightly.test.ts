import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { Ajv2020 } from "ajv/dist/2020.js";
import { beforeEach, describe, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, shareSurroundings } from "./surroundings.ts";

/** Compares lookup's answers with the OpenAPI document, so that a generated client understands each of them. */

const secret = "a-secret-of-the-openapi-tests-0123456789";
const shared = shareSurroundings(secret);

const file = fileURLToPath(import.meta.resolve("@booking-events/schema/openapi.json"));
const document = JSON.parse(readFileSync(file, "utf8"));
// Formats are hints.
const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, validateFormats: false });
ajv.addVocabulary(Object.keys(document));
ajv.addSchema(document, "openapi.json");

/** Of HTTP itself or for browsers, and the same for every service. */
const standardHeaders = [
  ...["date", "connection", "keep-alive", "content-type", "content-length", "transfer-encoding"],
  ...["x-content-type-options", "referrer-policy"],
];

const paths = {
  receipt: "/booking-event/receipt/{secret}/{eventId}",
  booking: "/booking-event/booking/{secret}",
  reconcile: "/booking-event/reconcile/{secret}",
  activity: "/booking-event/activity/{secret}",
};
type Question = keyof typeof paths;

const unknownEventId = "01a1fb0c-d72c-7345-a7ee-38bfa851309c";
const receiptPath = `/booking-event/receipt/${secret}/${unknownEventId}`;
const bookingPath = `/booking-event/booking/${secret}`;
const listPath = `/booking-event/reconcile/${secret}`;
const activityPath = `/booking-event/activity/${secret}`;
const list = {
  method: "POST",
  headers: { "Content-Type": "application/x-ndjson" },
};

beforeEach(() => {
  writePartnersFile(shared.environment["PARTNERS_FILE"] ?? "", [
    partner("acme", { [secret]: null }, { rateLimit: noLimit }),
  ]);
});

test("the document describes receipts, bookings and lists as they are answered", async () => {
  const { start, running } = shared;
  const [ingest, worker, lookup] = await Promise.all([start("ingest"), start("worker"), running("lookup")]);
  const booking = { consumerTripPartnerExternalReference: "TRIP-1" };
  const first = await post(ingest, "create", booking);
  await post(ingest, "update", { ...booking, consumerGivenName: "Ada" });
  const repeated = await post(ingest, "create", booking);
  const deleted = await post(ingest, "delete", { consumerTripPartnerExternalReference: "GONE" });
  const extra = await post(ingest, "create", { consumerPartnerExternalReference: "C-1" });
  await waitFor(async () => expect(await receiptOf(lookup, extra)).toMatchObject({ status: "applied" }));
  await worker.stop("SIGTERM");
  const waiting = await post(ingest, "update", booking);

  expect(await receiptOf(lookup, waiting)).toMatchObject({ status: "waiting" });
  expect(await receiptOf(lookup, first)).toMatchObject({ status: "applied", outcome: "created" });
  expect(await receiptOf(lookup, repeated)).toMatchObject({ status: "duplicate", duplicateOf: first });
  expect(await receiptOf(lookup, deleted)).toMatchObject({ status: "applied", outcome: "deleted" });
  expect(await bookingOf(lookup, "reference=TRIP-1")).toMatchObject({ state: "active" });
  expect(await bookingOf(lookup, "reference=C-1&referenceKind=consumer")).toMatchObject({ state: "active" });
  expect(await bookingOf(lookup, "reference=GONE")).toMatchObject({ state: "deleted" });
  expect(await bookingOf(lookup, "reference=TRIP-1&fields=all")).toMatchObject({ readings: { agentEmail: null } });
  const activity = await fetch(`${lookup.url}/booking-event/activity/${secret}`);
  expect(activity.status).toBe(200);
  await readDescribed("activity", activity);

  const lines = [
    { reference: "TRIP-1", digest: "0".repeat(64) },
    { reference: "GONE", referenceKind: "trip" },
    { reference: "NEVER" },
  ];
  for (const line of lines) expectValid("#/components/schemas/ListedReference", line);
  const body = lines.map((line) => JSON.stringify(line)).join("\n");
  const answer = await fetch(lookup.url + listPath, { ...list, body });
  const results = (await readDescribed("reconcile", answer)).map(({ result }) => result);
  expect(results).toEqual(["different", "deleted-here", "missing", "unknown", undefined]);
});

describe("the document describes the answer to", () => {
  test.each<[string, Question, number, string, RequestInit]>([
    ["an unknown event", "receipt", 404, receiptPath, {}],
    ["another method for a receipt", "receipt", 405, receiptPath, { method: "POST" }],
    ["a stranger's receipt", "receipt", 403, receiptPath.replace(secret, "stranger"), {}],
    ["large headers", "receipt", 431, receiptPath, { headers: { "X-Large": "x".repeat(20_000) } }],
    ["an unknown booking", "booking", 404, `${bookingPath}?reference=NEVER`, {}],
    ["a booking without a reference", "booking", 400, bookingPath, {}],
    ["another method for a booking", "booking", 405, bookingPath, { method: "POST" }],
    ["a booking with an unknown field", "booking", 400, `${bookingPath}?reference=A&fields=x`, {}],
    ["another method for an activity", "activity", 405, activityPath, { method: "POST" }],
    ["an activity of an unknown day", "activity", 400, `${activityPath}?day=2020-01-01`, {}],
    ["an empty list", "reconcile", 400, listPath, { ...list, body: "" }],
    ["an invalid line", "reconcile", 400, listPath, { ...list, body: "hello\n" }],
    ["another method for a list", "reconcile", 405, listPath, {}],
    ["a list of another type", "reconcile", 415, listPath, { method: "POST", body: "{}" }],
  ])("%s", async (_what, question, status, path, request) => {
    const lookup = await shared.running("lookup");
    const answer = await fetch(lookup.url + path, request);

    expect(answer.status).toBe(status);
    await readDescribed(question, answer);
  });

  test("a partner over its rate limit, and everyone when no partner is known", async () => {
    const path = shared.environment["PARTNERS_FILE"] ?? "";
    writePartnersFile(path, [partner("acme", { [secret]: null }, { rateLimit: { perSecond: 0.01, burst: 1 } })]);
    const lookup = await shared.start("lookup");
    await fetch(lookup.url + receiptPath);
    const limited = await fetch(lookup.url + receiptPath);
    expect(limited.status).toBe(429);
    await readDescribed("receipt", limited);

    writePartnersFile(path, []);
    await waitFor(async () => {
      const refused = await fetch(lookup.url + receiptPath);
      expect(refused.status).toBe(503);
      await readDescribed("receipt", refused);
    });
  });
});

function post(ingest: RunningApp, kind: string, fields: object): Promise<string> {
  return postAccepted(ingest, { secret, kind, fields });
}

async function receiptOf(lookup: RunningApp, eventId: string): Promise<unknown> {
  const answer = await fetch(`${lookup.url}/booking-event/receipt/${secret}/${eventId}`);
  expect(answer.status).toBe(200);
  return (await readDescribed("receipt", answer))[0];
}

async function bookingOf(lookup: RunningApp, query: string): Promise<unknown> {
  const answer = await fetch(`${lookup.url}${bookingPath}?${query}`);
  expect(answer.status).toBe(200);
  return (await readDescribed("booking", answer))[0];
}

/** Returns the lines of the body, of which JSON has one, if the document describes each of them and the headers. */
async function readDescribed(question: Question, answer: Response): Promise<Record<string, unknown>[]> {
  const method = question === "reconcile" ? "post" : "get";
  const { responses } = document.paths[paths[question]][method];
  expect(responses).toHaveProperty([answer.status]);
  const isShared = "$ref" in responses[answer.status];
  const pointer = isShared
    ? responses[answer.status].$ref
    : `#/paths/${paths[question].replaceAll("/", "~1")}/${method}/responses/${answer.status}`;
  const { headers, content } = isShared ? document.components.responses[answer.status] : responses[answer.status];
  const described = Object.keys(headers).map((name) => name.toLowerCase());
  expect([...described, ...standardHeaders]).toEqual(expect.arrayContaining([...answer.headers.keys()]));
  const type = answer.headers.get("content-type")?.split(";", 1)[0] ?? "";
  expect(Object.keys(content)).toEqual([type]);
  const lines = (await answer.text()).split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    const body = JSON.parse(line);
    expectValid(`${pointer}/content/${type.replaceAll("/", "~1")}/schema`, body);
    if (answer.status !== 200) expect(Object.keys(content[type].examples)).toContain(body.code);
    return body;
  });
}

function expectValid(pointer: string, value: unknown): void {
  ajv.validate({ $ref: `openapi.json${encodeURI(pointer)}` }, value);
  expect(ajv.errors).toBeNull();
}
