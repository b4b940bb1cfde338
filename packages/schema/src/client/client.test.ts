import { inspect } from "node:util";
import { type Step, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { invalidData, invalidSecret, overRateLimit, queueUnavailable } from "../answers/answers.ts";
import { validatePayload } from "../payload/validate-payload.ts";
import { BookingEventsError } from "./booking-events-error.ts";
import { type ClientOptions, createBookingEventsClient } from "./create-client.ts";

const secret = "client-secret/canary+5f2c81";
const booking = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Zoë" };
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const accepted: Step = { status: 200, body: { success: true, eventId } };
const dryRunPassed: Step = { status: 200, body: { success: true, dryRun: true } };
const unavailable = asStep(queueUnavailable, { "Retry-After": "0" });

function asStep({ status, body, headers }: typeof queueUnavailable, changed: Record<string, string> = {}): Step {
  return { status, body: JSON.parse(body), headers: { ...headers, ...changed } };
}

async function connect(steps: readonly Step[], options: Partial<ClientOptions> = {}) {
  const receiver = await startScriptedReceiver(steps);
  onTestFinished(receiver.close);
  const client = createBookingEventsClient({ baseUrl: receiver.url, secret, firstRetryDelayMs: 1, ...options });
  return { client, requests: receiver.requests };
}

async function failureOf(call: Promise<unknown>): Promise<BookingEventsError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof BookingEventsError)) throw new Error("The call did not fail as expected.", { cause: error });
  return error;
}

describe("a request", () => {
  test.each(["create", "update", "delete"] as const)("%s has the path, type, key and payload", async (kind) => {
    const { client, requests } = await connect([accepted]);

    expect(await client[kind](booking, { idempotencyKey: "TRIP-1/version-3" })).toEqual({ success: true, eventId });

    expect(requests).toMatchObject([
      {
        method: "POST",
        path: `/booking-event/${kind}/client-secret%2Fcanary%2B5f2c81`,
        headers: { "content-type": "application/json", "idempotency-key": "TRIP-1/version-3" },
      },
    ]);
    expect(JSON.parse(requests[0]?.body ?? "")).toEqual(booking);
    expect(requests[0]?.headers).not.toHaveProperty("x-dry-run");
  });

  test("has a new random key for each call without one", async () => {
    const { client, requests } = await connect([accepted]);

    await client.create(booking);
    await client.create(booking);

    const keys = requests.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toEqual([expect.stringMatching(/^[\w-]{36}$/), expect.stringMatching(/^[\w-]{36}$/)]);
    expect(keys[0]).not.toBe(keys[1]);
  });

  test("of a dry run says so", async () => {
    const { client, requests } = await connect([dryRunPassed]);

    expect(await client.create(booking, { dryRun: true })).toEqual({ success: true, dryRun: true });

    expect(requests[0]?.headers["x-dry-run"]).toBe("true");
  });

  test("may go below a path of the base URL", async () => {
    const receiver = await startScriptedReceiver([accepted]);
    onTestFinished(receiver.close);

    await createBookingEventsClient({ baseUrl: `${receiver.url}/gateway/`, secret: "s" }).create(booking);

    expect(receiver.requests[0]?.path).toBe("/gateway/booking-event/create/s");
  });

  test("is not sent with an invalid key", async () => {
    const { client, requests } = await connect([accepted]);

    for (const idempotencyKey of ["", " a", "a ", '"a"', "é", "x".repeat(256)])
      await expect(client.create(booking, { idempotencyKey })).rejects.toThrow(TypeError);

    expect(requests).toEqual([]);
  });
});

describe("a temporary failure is retried with the same bytes and key:", () => {
  const failures: [string, Step][] = [
    ["408", { status: 408, body: { message: "…", code: "too-slow" } }],
    ["429", asStep(overRateLimit(0))],
    ["500", { status: 500, body: { message: "…", code: "internal-error" } }],
    ["502 of a proxy", { status: 502, body: "<h1>Bad gateway</h1>" }],
    ["503", unavailable],
    ["a connection that ends before the answer", "disconnect"],
    ["a connection that ends within the answer", "cut"],
    ["an answer that does not arrive in time", "hang"],
    ["200 with another body than ours", { status: 200, body: "<h1>Log in</h1>" }],
  ];

  test.each(failures)("%s", async (_, failure) => {
    const { client, requests } = await connect([failure, failure, accepted], { attemptTimeoutMs: 500 });

    expect(await client.update(booking)).toEqual({ success: true, eventId });

    expect(requests).toHaveLength(3);
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
    expect(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  test("even if the caller changes the payload meanwhile", async () => {
    const { client, requests } = await connect([unavailable, accepted]);
    const changing = { ...booking };

    const call = client.update(changing);
    changing.consumerGivenName = "changed";
    await call;

    expect(requests.map(({ body }) => JSON.parse(body).consumerGivenName)).toEqual(["Zoë", "Zoë"]);
  });
});

describe("the attempts end", () => {
  test("after the given number, with an error that says how to go on", async () => {
    const { client, requests } = await connect([unavailable], { maxAttempts: 3 });

    const error = await failureOf(client.create(booking, { idempotencyKey: "k" }));

    expect(requests).toHaveLength(3);
    expect(error).toMatchObject({
      ...{ code: "queue-unavailable", status: 503, retryable: true, retryAfterMs: 0, attempts: 3, idempotencyKey: "k" },
      message: JSON.parse(queueUnavailable.body).message,
    });
  });

  test("at once if Retry-After is later than the end of the call", async () => {
    const later = asStep(overRateLimit(3_600));
    const { client, requests } = await connect([later], { totalTimeoutMs: 60_000 });

    const error = await failureOf(client.create(booking));

    expect(requests).toHaveLength(1);
    expect(error).toMatchObject({ code: "over-rate-limit", retryable: true, retryAfterMs: 3_600_000, attempts: 1 });
  });

  test("when the time for the call is up", async () => {
    const { client } = await connect(["hang"], { totalTimeoutMs: 50, maxAttempts: 1_000 });

    expect(await failureOf(client.create(booking))).toMatchObject({ code: "timeout", retryable: true });
  });

  test("without an answer, with the reason", async () => {
    const { url, close } = await startScriptedReceiver([]);
    await close();
    const client = createBookingEventsClient({ baseUrl: url, secret, firstRetryDelayMs: 1, maxAttempts: 2 });

    const error = await failureOf(client.create(booking));

    expect(error).toMatchObject({ code: "network-error", status: undefined, retryable: true, attempts: 2 });
    expect(error.message).toContain("ECONNREFUSED");
  });

  test("when the caller aborts during a request", async () => {
    const { client, requests } = await connect(["hang"]);
    const controller = new AbortController();

    const call = failureOf(client.create(booking, { signal: controller.signal }));
    await vi.waitFor(() => expect(requests).toHaveLength(1));
    controller.abort();

    expect(await call).toMatchObject({ code: "aborted", retryable: true, attempts: 1 });
  });

  test("when the caller aborts during a wait", async () => {
    const { client, requests } = await connect([asStep(overRateLimit(3_000))], { totalTimeoutMs: 10_000_000 });
    const controller = new AbortController();

    const call = failureOf(client.create(booking, { signal: controller.signal }));
    await vi.waitFor(() => expect(requests).toHaveLength(1));
    controller.abort();

    expect(await call).toMatchObject({ code: "aborted", attempts: 1 });
  });

  test("before the first if the signal is aborted already", async () => {
    const { client, requests } = await connect([accepted]);

    expect(await failureOf(client.create(booking, { signal: AbortSignal.abort() }))).toMatchObject({ attempts: 0 });

    expect(requests).toEqual([]);
  });
});

describe("a refusal is not retried:", () => {
  test.each([
    ["403", asStep(invalidSecret), { code: "invalid-secret", status: 403, message: "Invalid secret" }],
    ["404 of something else", { status: 404, body: "<h1>Not found</h1>" }, { code: "unexpected-answer", status: 404 }],
    ["a redirect", { status: 308, headers: { Location: "/elsewhere" } }, { code: "redirected", status: 308 }],
  ] as [string, Step, object][])("%s", async (_, step, details) => {
    const { client, requests } = await connect([step, accepted]);

    expect(await failureOf(client.create(booking))).toMatchObject({ ...details, retryable: false, attempts: 1 });

    expect(requests).toHaveLength(1);
  });

  test("422, with the violations and the id of the request", async () => {
    const violationList = [{ message: "Must be a string.", code: "null" as const, propertyPath: ["consumerPhone"] }];
    const { client, requests } = await connect([asStep(invalidData(violationList), { "X-Request-Id": eventId })]);

    const error = await failureOf(client.create(booking));

    expect(error).toMatchObject({
      ...{ code: "invalid-data", status: 422, violationList, requestId: eventId, retryable: false },
    });
    expect(requests).toHaveLength(1);
  });

  test("422 of a proxy that adds to the violations, without what it added", async () => {
    const violation = { message: "Must be a string.", code: "null", propertyPath: ["consumerPhone"] };
    const violationList = [{ ...violation, added: 1 }, null, "text", { ...violation, propertyPath: [1] }];
    const body = { message: "Invalid data", code: "invalid-data", violationList };
    const { client } = await connect([{ status: 422, body }]);

    expect((await failureOf(client.create(booking))).violationList).toEqual([violation]);
  });
});

test("a dry run that stored the event is no success", async () => {
  const { client } = await connect([accepted], { maxAttempts: 1 });

  expect(await failureOf(client.create(booking, { dryRun: true }))).toMatchObject({ code: "unexpected-answer" });
});

test("an answer without end is not read to its end", async () => {
  const { client } = await connect([{ status: 403, body: "x".repeat(20_000_000) }]);

  expect(await failureOf(client.create(booking))).toMatchObject({ code: "unexpected-answer", status: 403 });
});

test("a Date is not sent as a day, which it may not be in UTC", async () => {
  const { client, requests } = await connect([accepted]);

  // @ts-expect-error The type is a string.
  await expect(client.create({ ...booking, consumerTripReturnDate: new Date(2027, 5, 14) })).rejects.toThrow(
    "consumerTripReturnDate is a Date",
  );

  expect(requests).toEqual([]);
});

describe("with a validator", () => {
  test("an invalid payload is not sent", async () => {
    const { client, requests } = await connect([accepted], { validate: validatePayload });

    const error = await failureOf(client.create({ consumerGivenName: "Zoë" }));

    expect(error).toMatchObject({ code: "invalid-data", status: undefined, retryable: false, attempts: 0 });
    expect(error.violationList.map(({ propertyPath }) => propertyPath)).toEqual([
      ["consumerTripPartnerExternalReference"],
    ]);
    expect(requests).toEqual([]);
  });

  test("what is checked is what is sent", async () => {
    const { client, requests } = await connect([accepted], { validate: validatePayload });

    await client.create({ ...booking, soldAt: new Date(0), consumerPhone: undefined });

    expect(JSON.parse(requests[0]?.body ?? "")).toEqual({ ...booking, soldAt: "1970-01-01T00:00:00.000Z" });
  });
});

describe("the secret is in no error, property or output:", () => {
  const forms = /client-secret|canary/;

  function expectNoSecret(value: unknown): void {
    expect(inspect(value, { depth: Number.POSITIVE_INFINITY, showHidden: true })).not.toMatch(forms);
    expect(JSON.stringify(value) ?? "").not.toMatch(forms);
    expect(String(value)).not.toMatch(forms);
  }

  test("of the client", async () => {
    const { client } = await connect([accepted]);

    expectNoSecret(client);
    expectNoSecret(client.create);
  });

  test.each<[string, Step]>([
    [
      "a refusal that repeats the URL",
      { status: 403, body: { message: `No ${secret}`, code: encodeURIComponent(secret) } },
    ],
    [
      "a violation that has the URL as a key",
      {
        status: 422,
        body: { message: "", code: "", violationList: [{ message: "", code: "", propertyPath: [], [secret]: 1 }] },
      },
    ],
    ["a page that repeats the URL", { status: 404, body: `<p>/booking-event/create/${secret}</p>` }],
    ["a redirect", { status: 301, headers: { Location: `/v2/${secret}`, "X-Request-Id": secret } }],
    ["a broken connection", "disconnect"],
  ])("of %s", async (_, step) => {
    const { client } = await connect([step], { maxAttempts: 1 });

    expectNoSecret(await failureOf(client.create(booking)));
  });

  // Deno and Bun write the URL into their messages.
  test("of a fetch that writes the URL into its errors", async () => {
    const fetch = async (url: unknown) => {
      throw new TypeError(`error sending request for url (${url})`, { cause: { code: `E_${secret}` } });
    };
    const { client } = await connect([], { maxAttempts: 1, fetch });

    const error = await failureOf(client.create(booking));

    expectNoSecret(error);
    expect(error.code).toBe("network-error");
  });

  test.each([
    { baseUrl: `https://bookings.example.com/booking-event/create/${secret}` },
    { baseUrl: `ftp://${secret}` },
    { baseUrl: secret },
    { baseUrl: "https://bookings.example.com", secret: `${secret}\n` },
  ])("of an invalid option", (options) => {
    let error: unknown;
    try {
      createBookingEventsClient({ secret, ...options });
    } catch (thrown) {
      error = thrown;
    }

    expect(error).toBeInstanceOf(TypeError);
    expectNoSecret(error);
  });

  test("of the console", async () => {
    const methods = ["log", "info", "warn", "error", "debug"] as const;
    const printed = methods.map((method) => vi.spyOn(console, method));
    const { client } = await connect([unavailable, asStep(invalidSecret)]);

    await failureOf(client.create(booking));

    for (const print of printed) expect(print).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });
});

test("a short placeholder for the secret does not change the service's words", async () => {
  const { client } = await connect([asStep(invalidSecret)], { secret: "secret" });

  expect(await failureOf(client.create(booking))).toMatchObject({ code: "invalid-secret", message: "Invalid secret" });
});

describe("the base URL", () => {
  const create = (baseUrl: string) => createBookingEventsClient({ baseUrl, secret: "s" });

  test.each([
    "https://bookings.example.com",
    "https://bookings.example.com:8443/gateway/",
    "http://localhost:8080",
    "http://ingest.localhost",
    "http://127.0.0.1:8080",
    "http://[::1]:8080",
  ])("%s is accepted", (baseUrl) => {
    expect(create(baseUrl)).toHaveProperty("create");
  });

  test.each([
    "http://bookings.example.com",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "bookings.example.com",
    "https://user:password@bookings.example.com",
    "https://bookings.example.com?a=b",
    "https://bookings.example.com#a",
    "https://bookings.example.com/booking-event",
    "",
  ])("%s is refused", (baseUrl) => {
    expect(() => create(baseUrl)).toThrow(TypeError);
  });
});

test.each([
  { secret: "" },
  { secret: "two words" },
  { secret: "." },
  { secret: ".." },
  { secret: "\ud800" },
  { attemptTimeoutMs: 0 },
  { totalTimeoutMs: Number.POSITIVE_INFINITY },
  { maxAttempts: Number.NaN },
  { firstRetryDelayMs: -1 },
])("the option %o is refused", (option) => {
  expect(() => createBookingEventsClient({ baseUrl: "https://bookings.example.com", secret: "s", ...option })).toThrow(
    TypeError,
  );
});

test("an invalid address for questions is named", () => {
  const options = { baseUrl: "https://bookings.example.com", secret: "s" };

  expect(() => createBookingEventsClient({ ...options, lookupUrl: "" })).toThrow("lookupUrl must be an https URL");
});
