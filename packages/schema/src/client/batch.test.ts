import { type ReceivedRequest, type Step, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { expect, onTestFinished, test } from "vitest";
import { accepted, invalidData, invalidSecret, queueUnavailable } from "../answers/answers.ts";
import { toBatchLine } from "../answers/batch-line.ts";
import type { BatchAnswer } from "./batch-event.ts";
import { createBookingEventsClient } from "./create-client.ts";

const secret = "client-secret/canary+5f2c81";
const ok = accepted("01a1fafe-d690-7608-9309-bff7f221cbc9");

function answerWith(...lines: (typeof ok)[]): Step {
  return { status: 200, body: lines.map((line, index) => toBatchLine(index + 1, line)).join("") };
}

/** @returns the answers to events with the keys k-0, k-1 and so on, and what the service got */
async function sendBatch(count: number, steps: readonly Step[]) {
  const receiver = await startScriptedReceiver(steps);
  onTestFinished(receiver.close);
  const client = createBookingEventsClient({ baseUrl: receiver.url, secret, firstRetryDelayMs: 1, maxAttempts: 2 });
  const events = Array.from({ length: count }, (_, index) => ({
    kind: "create" as const,
    payload: { consumerTripPartnerExternalReference: `TRIP-${index}` },
    idempotencyKey: `k-${index}`,
  }));
  const answers: BatchAnswer[] = [];
  let error: unknown;
  try {
    for await (const answer of client.batch(events)) answers.push(answer);
  } catch (thrown) {
    error = thrown;
  }
  return { answers, error, sentKeys: receiver.requests.map(keysIn) };
}

function keysIn({ body }: ReceivedRequest): string[] {
  const lines = body.trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line).idempotencyKey);
}

const keys = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `k-${from + index}`);

function refusedAtLength(length: number) {
  return invalidData([{ message: "x".repeat(length), code: "null", propertyPath: ["consumerPhone"] }]);
}

test("a batch is sent a hundred events at a time", async () => {
  const { answers, sentKeys } = await sendBatch(150, [
    answerWith(...Array(100).fill(ok)),
    answerWith(...Array(50).fill(ok)),
  ]);

  expect(answers.map(({ idempotencyKey }) => idempotencyKey)).toEqual(keys(0, 150));
  expect(sentKeys).toEqual([keys(0, 100), keys(100, 150)]);
});

test("a long answer to a batch is read", async () => {
  const { answers, sentKeys } = await sendBatch(100, [answerWith(...Array(100).fill(refusedAtLength(20_000)))]);

  expect(answers).toHaveLength(100);
  expect(answers[99]).toMatchObject({ line: 100, status: 422, violationList: [{ code: "null" }] });
  expect(sentKeys).toEqual([keys(0, 100)]);
});

test("of an answer that is too long to be read, the lines up to there count", async () => {
  const { answers, error, sentKeys } = await sendBatch(3, [
    answerWith(ok, ok, refusedAtLength(5_000_000)),
    answerWith(ok),
  ]);

  expect(error).toBeUndefined();
  expect(answers.map(({ line, status }) => [line, status])).toEqual([
    [1, 200],
    [2, 200],
    [3, 200],
  ]);
  expect(sentKeys).toEqual([keys(0, 3), keys(2, 3)]);
});

test("a 403 that ends the answer decides nothing, and the event is sent again", async () => {
  const { answers, sentKeys } = await sendBatch(3, [answerWith(ok, invalidSecret), answerWith(ok, ok)]);

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(sentKeys).toEqual([keys(0, 3), keys(1, 3)]);
});

test("a 403 of one kind of event decides it", async () => {
  const { answers, sentKeys } = await sendBatch(3, [answerWith(ok, invalidSecret, invalidSecret)]);

  expect(answers.map(({ status }) => status)).toEqual([200, 403, 403]);
  expect(sentKeys).toEqual([keys(0, 3)]);
});

test("after a secret has expired within a batch, its refusal is thrown", async () => {
  const { body } = invalidSecret;
  const { answers, error } = await sendBatch(3, [
    answerWith(ok, invalidSecret),
    { status: 403, body: JSON.parse(body) },
  ]);

  expect(answers.map(({ status }) => status)).toEqual([200]);
  expect(error).toMatchObject({ code: "invalid-secret", status: 403, retryable: false });
});

test("a batch of which no event can be stored ends", async () => {
  const { answers, error, sentKeys } = await sendBatch(3, [
    answerWith({ ...queueUnavailable, headers: { "Retry-After": "0" } }),
  ]);

  expect(answers).toEqual([]);
  expect(error).toMatchObject({ code: "queue-unavailable", status: 503, retryable: true, attempts: 2 });
  expect(sentKeys).toEqual([keys(0, 3), keys(0, 3)]);
});
