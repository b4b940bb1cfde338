import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { exchange, type RawAnswer, type RequestParts } from "@booking-events/harness/http-client";
import { acmeSecret, partner } from "@booking-events/harness/partners";
import { createPartnerRegistry } from "@booking-events/partners";
import { answers } from "@booking-events/schema";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { limiterOf, startIngest, type TestIngest } from "./testing/start-ingest.ts";

/** Compares what is sent with the OpenAPI document, so that a generated client understands every answer. */

const file = fileURLToPath(import.meta.resolve("@booking-events/schema/openapi.json"));
const document = JSON.parse(readFileSync(file, "utf8"));
const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, validateFormats: false });
ajv.addVocabulary(Object.keys(document));
ajv.addSchema(document, "openapi.json");

/** Of HTTP itself or for browsers, and the same for every service. */
const standardHeaders = [
  ...["Date", "Connection", "Keep-Alive", "Content-Type", "Content-Length"],
  ...["X-Content-Type-Options", "Referrer-Policy"],
];

const path = `/booking-event/create/${acmeSecret}`;
const body = '{"consumerTripPartnerExternalReference":"T-1"}';
const rateLimit = { "RateLimit-Policy": '"partner";q=400;w=2', RateLimit: '"partner";r=398;t=1' };
const nobodysRegistry = createPartnerRegistry({ partners: [partner("other", { "other-secret": null })] });
const limits = { requestTimeoutMs: 200, headersTimeoutMs: 100, timeoutCheckIntervalMs: 10 };

let ingest: TestIngest;
const seenStatuses = new Set<string>();

beforeAll(async () => {
  ingest = await startIngest({ limiter: limiterOf(async () => ({ headers: rateLimit })) }, limits);
});
afterAll(() => ingest.close());

test.each<[string, number, RequestParts]>([
  ["an accepted event", 200, { path, body }],
  ["a dry run", 200, { path, body, headers: { "X-Dry-Run": "true" } }],
  ["malformed JSON", 400, { path, body: "{" }],
  ["a guessed secret", 403, { path: "/booking-event/create/guess", body }],
  ["another path", 404, { path: "/", body }],
  ["another method", 405, { method: "PUT", path, body }],
  ["a slow body", 408, { path, headers: { "Content-Length": "9", "Content-Type": "application/json" } }],
  ["a large body", 413, { path, body: `{"a":"${"x".repeat(65_536)}"}` }],
  ["another type", 415, { path, body, headers: { "Content-Type": "text/html" } }],
  ["violations", 422, { path, body: '{"consumerPhone":7,"consumerTripBookingDate":"2026-06-14"}' }],
  ["large headers", 431, { path, body, headers: { "X-Large": "x".repeat(9_000) } }],
])("%s: the document describes the answer %i", async (_what, status, request) => {
  const answer = await exchange(ingest.port, request);
  expect(answer.status).toBe(status);
  expectDescribed(answer);
});

test.each<[string, number, Parameters<typeof startIngest>[0]]>([
  ["over the rate limit", 429, { limiter: limiterOf(async () => ({ retryAfterS: 1, headers: rateLimit })) }],
  ["guessing", 429, { partners: () => nobodysRegistry, answerGuess: () => answers.tooManyGuesses(60) }],
  ["a bug", 500, { isShuttingDown: failing }],
  ["an outage", 503, { isQueueAvailable: () => false }],
])("%s: the document describes the answer %i", async (_what, status, overrides) => {
  const other = await startIngest(overrides);
  try {
    const answer = await exchange(other.port, { path, body });
    expect(answer.status).toBe(status);
    expectDescribed(answer);
  } finally {
    await other.close();
  }
});

test("every status in the document has been seen", () => {
  expect([...seenStatuses].sort()).toEqual(Object.keys(document.components.responses));
});

function failing(): never {
  throw new Error("a bug");
}

function expectDescribed(answer: RawAnswer): void {
  const { post } = document.paths["/booking-event/create/{secret}"];
  expect(post.responses).toHaveProperty([answer.status]);
  const { headers, content } = document.components.responses[answer.status];
  expect([...Object.keys(headers), ...standardHeaders]).toEqual(expect.arrayContaining(Object.keys(answer.headers)));
  const pointer = `openapi.json#/components/responses/${answer.status}/content/application~1json/schema`;
  ajv.validate({ $ref: pointer }, JSON.parse(answer.body));
  expect(ajv.errors).toBeNull();
  const { code } = JSON.parse(answer.body);
  if (answer.status !== 200) expect(Object.keys(content["application/json"].examples)).toContain(code);
  seenStatuses.add(String(answer.status));
}
