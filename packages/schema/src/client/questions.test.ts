import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { type Step, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { describe, expect, onTestFinished, test } from "vitest";
import { invalidSecret } from "../answers/answers.ts";
import {
  alreadyReconciling,
  emptyList,
  invalidListLine,
  lookupUnavailable,
  noSuchBooking,
  noSuchEvent,
  noSuchPath,
} from "../answers/lookup-answers.ts";
import type { Difference, ListedReference } from "../answers/lookup-bodies.ts";
import { BookingEventsError } from "./booking-events-error.ts";
import { createBookingEventsClient } from "./create-client.ts";

const secret = "client-secret/canary+5f2c81";
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const summary = { references: 1, same: 0, missing: 1, different: 0, "deleted-here": 0, erased: 0, unknown: 0 };
const missing: Difference = { reference: "TRIP-1", result: "missing" };

function asStep({ status, body, headers }: typeof lookupUnavailable, changed: Record<string, string> = {}): Step {
  return { status, body: JSON.parse(body), headers: { ...headers, ...changed } };
}

async function connect(steps: readonly Step[]) {
  const receiver = await startScriptedReceiver(steps);
  onTestFinished(receiver.close);
  const baseUrl = "https://bookings.invalid";
  const client = createBookingEventsClient({ baseUrl, lookupUrl: receiver.url, secret, firstRetryDelayMs: 1 });
  return { client, requests: receiver.requests };
}

async function failureOf(call: Promise<unknown>): Promise<BookingEventsError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof BookingEventsError)) throw new Error("The call did not fail as expected.", { cause: error });
  expect(inspect(error, { showHidden: true })).not.toMatch(/client-secret|canary/);
  return error;
}

describe("a question", () => {
  const receipt = { eventId, status: "applied", outcome: "created", decidedBy: eventId };

  test("about an event is asked again after a temporary failure", async () => {
    const { client, requests } = await connect([
      asStep(lookupUnavailable, { "Retry-After": "0" }),
      { status: 200, body: receipt },
    ]);

    expect(await client.receipt(eventId)).toEqual(receipt);

    const path = `/booking-event/receipt/client-secret%2Fcanary%2B5f2c81/${eventId}`;
    expect(requests).toMatchObject([
      { method: "GET", path },
      { method: "GET", path },
    ]);
  });

  test("about a booking names the reference and its kind", async () => {
    const { client, requests } = await connect([{ status: 200, body: { state: "erased" } }]);

    expect(await client.booking("A & B", { referenceKind: "consumer" })).toEqual({ state: "erased" });

    expect(requests[0]?.path).toMatch(/\/booking-event\/booking\/[^/]+\?reference=A\+%26\+B&referenceKind=consumer$/);
  });

  test("about a booking may ask for readings of fields", async () => {
    const booking = {
      ...{ state: "active", revision: 1, decidedBy: eventId, updatedAt: "2027-05-02T09:30:11.020Z" },
      ...{ digest: "5f".repeat(32), readings: { consumerPhone: "+442071838750" } },
    };
    const { client, requests } = await connect([
      { status: 200, body: booking },
      { status: 200, body: booking },
    ]);

    expect(await client.booking("A", { fields: ["consumerPhone", "agentEmail"] })).toEqual(booking);
    await client.booking("A", { fields: "all" });

    expect(requests[0]?.path).toMatch(/\?reference=A&referenceKind=trip&fields=consumerPhone%2CagentEmail$/);
    expect(requests[1]?.path).toMatch(/&fields=all$/);
  });

  test("about your activity may name a day", async () => {
    const { client, requests } = await connect([{ status: 200, body: { hours: [] } }]);

    await client.activity();
    await client.activity({ day: "2027-05-02" });

    expect(requests.map(({ path }) => path.replace(/.*activity/, ""))).toEqual([
      "/client-secret%2Fcanary%2B5f2c81",
      "/client-secret%2Fcanary%2B5f2c81?day=2027-05-02",
    ]);
  });

  test("about what the service does not have is answered with undefined", async () => {
    const { client } = await connect([asStep(noSuchEvent), asStep(noSuchBooking)]);

    expect(await client.receipt(eventId)).toBeUndefined();
    expect(await client.booking("TRIP-1")).toBeUndefined();
  });

  test("that cannot be answered fails, also with another 404", async () => {
    const { client } = await connect([asStep(noSuchPath), asStep(invalidSecret)]);

    expect(await failureOf(client.receipt(eventId))).toMatchObject({ code: "no-such-path", status: 404 });
    expect(await failureOf(client.booking("TRIP-1"))).toMatchObject({ code: "invalid-secret", retryable: false });
  });
});

describe("a list", () => {
  const toLines = (...lines: object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

  async function readAll(
    answer: AsyncGenerator<Difference, unknown>,
  ): Promise<{ differences: Difference[]; end: unknown }> {
    const differences: Difference[] = [];
    for (;;) {
      const { done, value } = await answer.next();
      if (done) return { differences, end: value };
      differences.push(value);
    }
  }

  test("is sent line by line, and its differences and the summary are read", async () => {
    const { client, requests } = await connect([{ status: 200, body: toLines(missing, { summary }) }]);
    const list: ListedReference[] = [
      { reference: "TRIP-1", digest: "5f".repeat(32) },
      { reference: "C-7", referenceKind: "consumer" },
    ];

    expect(await readAll(client.reconcile(list))).toEqual({ differences: [missing], end: summary });

    expect(requests[0]).toMatchObject({ method: "POST", headers: { "content-type": "application/x-ndjson" } });
    expect(requests[0]?.body).toBe(toLines(...list));
  });

  test("may be empty only if the caller says so, and its wrong lines are in the error", async () => {
    const violationList = [{ message: "Line 2: …", code: "malformed" as const, propertyPath: ["2"] }];
    const { client, requests } = await connect([
      { status: 200, body: toLines({ summary }) },
      asStep(emptyList),
      asStep(invalidListLine(violationList)),
    ]);

    expect(await readAll(client.reconcile([], { allowEmpty: true }))).toEqual({ differences: [], end: summary });
    expect(await failureOf(readAll(client.reconcile([])))).toMatchObject({ code: "empty-list", retryable: false });
    expect(await failureOf(readAll(client.reconcile([{ reference: "A" }])))).toMatchObject({ violationList });

    expect(requests.map(({ path }) => path.split("?")[1])).toEqual(["allowEmpty=true", undefined, undefined]);
  });

  test("may be generated while it is sent, and be long", async () => {
    const { client, requests } = await connect([{ status: 200, body: toLines({ summary }) }]);
    async function* generate() {
      for (let number = 0; number < 20_000; number += 1) yield { reference: `TRIP-${number}` };
    }

    await readAll(client.reconcile(generate()));

    const lines = requests[0]?.body.trimEnd().split("\n") ?? [];
    expect(lines).toHaveLength(20_000);
    expect(lines.at(-1)).toBe('{"reference":"TRIP-19999"}');
  });

  test.each<[string, Step, object]>([
    ["without a summary", { status: 200, body: toLines(missing) }, { code: "network-error", retryable: true }],
    ["that breaks off", "cut", { code: "network-error", retryable: true }],
    ["that is not the service's", { status: 200, body: "<h1>Log in</h1>\n" }, { code: "network-error" }],
    ["that is a refusal", asStep(alreadyReconciling), { code: "already-reconciling", retryAfterMs: 10_000 }],
    ["with an invalid secret", asStep(invalidSecret), { code: "invalid-secret", retryable: false }],
    ["that redirects", { status: 307, headers: { Location: `/${secret}` } }, { code: "redirected" }],
  ])("with an answer %s fails, and is not sent again", async (_, step, details) => {
    const { client, requests } = await connect([step]);

    expect(await failureOf(readAll(client.reconcile([{ reference: "TRIP-1" }])))).toMatchObject(details);

    expect(requests).toHaveLength(1);
  });

  test("that cannot be read fails with its own error", async () => {
    const { client } = await connect([{ status: 200, body: toLines({ summary }) }]);
    const problem = new Error("The database is down.");
    async function* generate(): AsyncGenerator<ListedReference> {
      yield { reference: "TRIP-1" };
      throw problem;
    }

    await expect(readAll(client.reconcile(generate()))).rejects.toBe(problem);
  });

  test("that hangs ends with the time-out", async () => {
    const { client } = await connect([{ status: 200, body: toLines({ summary }) }]);
    async function* generate(): AsyncGenerator<ListedReference> {
      yield { reference: "TRIP-1" };
      await new Promise(() => {});
    }

    expect(await failureOf(readAll(client.reconcile(generate(), { timeoutMs: 50 })))).toMatchObject({
      code: "timeout",
    });
  });

  test("can be aborted and has a time-out", async () => {
    const { client } = await connect(["hang"]);
    const list = [{ reference: "TRIP-1" }];

    expect(await failureOf(readAll(client.reconcile(list, { timeoutMs: 50 })))).toMatchObject({ code: "timeout" });
    expect(await failureOf(readAll(client.reconcile(list, { signal: AbortSignal.timeout(50) })))).toMatchObject({
      code: "aborted",
    });
    expect(await failureOf(readAll(client.reconcile(list, { signal: AbortSignal.abort() })))).toMatchObject({
      attempts: 0,
    });
  });

  test("is not read further after the answer, and is told so", async () => {
    const server = createServer((_, response) =>
      response.writeHead(403, { Connection: "close" }).end(invalidSecret.body),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const lookupUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = createBookingEventsClient({ baseUrl: lookupUrl, secret });
    let isClosed = false;
    function* generate() {
      try {
        for (;;) yield { reference: "TRIP-1" };
      } finally {
        isClosed = true;
      }
    }

    expect(await failureOf(readAll(client.reconcile(generate())))).toMatchObject({ code: "invalid-secret" });

    expect(isClosed).toBe(true);
    server.close();
    server.closeAllConnections();
  });

  test.each([0, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])(
    "is not sent with the time-out %s",
    async (timeoutMs) => {
      const { client, requests } = await connect([]);

      expect(() => client.reconcile([], { timeoutMs })).toThrow(/^timeoutMs must be a number from 1/);
      expect(requests).toEqual([]);
    },
  );

  test("whose answer is no longer wanted ends the request", async () => {
    const { client } = await connect([{ status: 200, body: toLines(...Array(100_000).fill(missing)) }]);
    const read: Difference[] = [];

    for await (const difference of client.reconcile([{ reference: "TRIP-1" }])) {
      read.push(difference);
      break;
    }

    expect(read).toEqual([missing]);
  });
});
