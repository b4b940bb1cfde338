import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Adapter, partnerLanguages, startAdapter } from "@booking-events/harness/partner-languages";
import { type Step, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { parseJsonObject, replaceUnstorableText, toCanonicalJson } from "@booking-events/schema";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { playReceiver } from "./play-receiver.ts";
import { scenarios } from "./scenarios.ts";

/** Of the clients that partners copy: each behaves alike. A program that is missing fails, with what to install. */
const secret = "partner-secret/canary+5f2c81";
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const booking = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Zoë 😀" };
const defaults = {
  ...{ lookupUrl: null, secret, method: "create", payload: booking, key: null, dryRun: false, allowEmpty: false },
  ...{ fields: "", maxAttempts: 5, firstRetryDelayS: 0.001, attemptTimeoutS: 10, totalTimeoutS: 60 },
};
type Options = Partial<Record<keyof typeof defaults | "baseUrl", unknown>>;

const accepted: Step = { status: 200, body: { success: true, eventId } };
const refuse = (status: number, code: string, headers = {}): Step => ({
  status,
  headers,
  body: { message: "M.", code },
});
const unavailable = refuse(503, "queue-unavailable", { "Retry-After": "0" });
const toLines = (...lines: object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");
const violations = [{ message: "…", code: "null", propertyPath: ["consumerPhone"] }];

describe.each(partnerLanguages)("in $name,", (language) => {
  let adapter: Adapter;
  beforeAll(async () => {
    adapter = await startAdapter(language);
  });
  afterAll(() => adapter?.stop());

  /** @returns what the client's call led to, and what arrived */
  async function call(steps: readonly Step[], options: Options = {}) {
    const receiver = await startScriptedReceiver(steps);
    onTestFinished(receiver.close);
    const line = await adapter.ask({ ...defaults, baseUrl: receiver.url, ...options });
    // With a placeholder, the word is in other places, too.
    if (options.secret === undefined) expect(line).not.toMatch(/partner-secret|canary/);
    const { result, shown } = JSON.parse(line);
    expect(shown.join("")).not.toBe("");
    return { result, requests: receiver.requests };
  }

  test("every scenario of the kit passes", async () => {
    const { url, secret: ofRun, report } = await playReceiver({ port: 0, speed: 4 });
    const errors: string[] = [];
    for (const { name } of scenarios) {
      const ofScenario = { ...defaults, baseUrl: url, secret: ofRun, firstRetryDelayS: 1, attemptTimeoutS: 5 };
      const payload = { consumerTripPartnerExternalReference: name };
      const { result } = JSON.parse(await adapter.ask({ ...ofScenario, payload }));
      if (result.code !== undefined) errors.push(result.code);
      const more = { ...payload, consumerTripArrivalDate: "2027-06-14" };
      if (name === "accepted") await adapter.ask({ ...ofScenario, method: "update", payload: more });
    }

    const { scenarios: results, habits, refused, warnings } = await report;
    expect([...results, ...habits].filter(({ outcome }) => outcome !== "passed")).toEqual([]);
    expect([refused, warnings]).toEqual([[], []]);
    expect(errors.sort()).toEqual(["invalid-data", "invalid-secret", "not-an-object"]);
  });

  test.each(["create", "update", "delete"])("%s sends the path, type, key and payload", async (method) => {
    const { result, requests } = await call([accepted], { method, key: 'TRIP 1 "version" 3' });

    expect(result).toEqual({ answer: { success: true, eventId } });
    expect(requests).toMatchObject([
      {
        method: "POST",
        path: `/booking-event/${method}/partner-secret%2Fcanary%2B5f2c81`,
        headers: { "content-type": "application/json", "idempotency-key": 'TRIP 1 "version" 3' },
      },
    ]);
    expect(JSON.parse(requests[0]?.body ?? "")).toEqual(booking);
    expect(requests[0]?.headers).not.toHaveProperty("x-dry-run");
  });

  test("warnings are part of the answer, and are not retried", async () => {
    const body = { success: true, eventId, warnings: [{ message: "…", code: "no-time-zone", propertyPath: ["x"] }] };
    const { result, requests } = await call([{ status: 200, body }]);

    expect(result).toEqual({ answer: body });
    expect(requests).toHaveLength(1);
  });

  test("a dry run says so, and is no success if the event was stored", async () => {
    const { result, requests } = await call([{ status: 200, body: { success: true, dryRun: true } }], { dryRun: true });
    expect(result).toEqual({ answer: { success: true, dryRun: true } });
    expect(requests[0]?.headers["x-dry-run"]).toBe("true");

    const { result: stored } = await call([accepted], { dryRun: true, maxAttempts: 1 });
    expect(stored).toMatchObject({ code: "unexpected-answer" });
  });

  test.each<[string, Step]>([
    ["408", refuse(408, "too-slow")],
    ["429 with a date", { status: 429, headers: { "Retry-After": "Sun, 22 Nov 2020 12:00:05 GMT" } }],
    ["502 of a proxy", { status: 502, body: "<h1>Bad gateway</h1>" }],
    ["503", unavailable],
    ["a connection that ends before the answer", "disconnect"],
    ["a connection that ends within the answer", "cut"],
    ["an answer that does not arrive in time", "hang"],
    ["200 with another body than ours", { status: 200, body: "<h1>Log in</h1>" }],
  ])("%s is retried with the same bytes and key", async (_, failure) => {
    const { result, requests } = await call([failure, failure, accepted], { attemptTimeoutS: 0.5 });

    expect(result).toEqual({ answer: { success: true, eventId } });
    expect(requests).toHaveLength(3);
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
    expect(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(requests[0]?.headers["idempotency-key"]).toMatch(/^[\w-]{32,36}$/);
  });

  test("the attempts end after the given number", async () => {
    const { result, requests } = await call([unavailable], { maxAttempts: 3, key: "k" });

    expect(requests).toHaveLength(3);
    const expected = { code: "queue-unavailable", status: 503, retryable: true, retryAfterS: 0, attempts: 3, key: "k" };
    expect(result).toMatchObject({ ...expected, message: "M." });
  });

  test.each(["3600", "Sun, 22 Nov 2026 13:00:00 GMT"])(
    "Retry-After %s, later than the end of the call, ends it",
    async (retryAfter) => {
      const headers = { "Retry-After": retryAfter, Date: "Sun, 22 Nov 2026 12:00:00 GMT" };
      const { result, requests } = await call([refuse(429, "over-rate-limit", headers)]);

      expect(requests).toHaveLength(1);
      expect(result).toMatchObject({ code: "over-rate-limit", retryable: true, retryAfterS: 3_600 });
    },
  );

  test.each<[string, Step, object]>([
    ["403", refuse(403, "invalid-secret"), { code: "invalid-secret", status: 403 }],
    ["404 of something else", { status: 404, body: "<h1>Not found</h1>" }, { code: "unexpected-answer", status: 404 }],
    ["a redirect", { status: 307, headers: { Location: "/elsewhere" } }, { code: "redirected", status: 307 }],
    [
      "422",
      {
        status: 422,
        headers: { "X-Request-Id": eventId },
        body: { message: "Invalid data", code: "invalid-data", violationList: violations },
      },
      { code: "invalid-data", requestId: eventId, violations },
    ],
  ])("%s is not retried", async (_, step, details) => {
    const { result, requests } = await call([step, accepted]);

    expect(result).toMatchObject({ ...details, retryable: false, attempts: 1 });
    expect(requests).toHaveLength(1);
  });

  // `call` looks for the secret in all that is printed.
  test.each<[string, Step[], Options]>([
    ["a refusal", [{ status: 403, body: { message: `No ${secret}`, code: encodeURIComponent(secret) } }], {}],
    ["a page", [{ status: 404, headers: { "X-Request-Id": secret }, body: `<p>${secret}</p>` }], {}],
    ["a redirect", [{ status: 301, headers: { Location: `/v2/${secret}` } }], {}],
    ["a broken connection", ["disconnect"], { maxAttempts: 1 }],
    ["a host that is not there", [accepted], { baseUrl: "http://127.0.0.1:9", maxAttempts: 1 }],
    ["an address with the secret", [accepted], { baseUrl: `https://localhost/booking-event/create/${secret}` }],
    ["an address without TLS", [accepted], { baseUrl: "http://bookings.example.com" }],
    ["a secret with a line break", [accepted], { secret: "partner-secret-canary\n" }],
    ...["", " ", "two\nlines", "space ", '"quoted"', "x".repeat(256)].map((key): [string, Step[], Options] => [
      `the key ${JSON.stringify(key.slice(0, 9))}`,
      [accepted],
      { key },
    ]),
  ])("the secret is not in the error of %s", async (_, steps, options) => {
    const { result } = await call(steps, options);

    expect(result).not.toHaveProperty("answer");
  });

  test("a short placeholder for the secret does not change the service's words", async () => {
    const { result } = await call([refuse(403, "invalid-secret")], { secret: "invalid" });

    expect(result).toMatchObject({ code: "invalid-secret" });
  });

  test.each(["http://bookings.example.com", "https://bookings.example.com/booking-event"])(
    "the address for questions, %s, is refused by its name",
    async (lookupUrl) => {
      const { result } = await call([accepted], { lookupUrl });

      expect(result.invalid).toMatch(/^lookup_?url must/i);
    },
  );

  describe("a question", () => {
    const path = "partner-secret%2Fcanary%2B5f2c81";

    test("goes to the other address, is asked again, and has an answer or none", async () => {
      const lookup = await startScriptedReceiver([
        unavailable,
        { status: 200, body: { eventId, status: "waiting" } },
        refuse(404, "no-such-event"),
        { status: 200, body: { state: "erased" } },
        refuse(404, "no-such-booking"),
        { status: 200, body: { state: "active", readings: { consumerPhone: null } } },
        { status: 200, body: { hours: [], limits: { perSecond: 2.5 } } },
        { status: 200, body: { hours: [] } },
        refuse(404, "no-such-path"),
      ]);
      onTestFinished(lookup.close);
      const ask = async (method: string, payload: unknown, fields = "") =>
        (await call([], { lookupUrl: lookup.url, method, payload, fields })).result;

      expect(await ask("receipt", eventId)).toEqual({ answer: { eventId, status: "waiting" } });
      expect(await ask("receipt", "a/b")).toEqual({ answer: null });
      expect(await ask("booking", "A & Ü")).toEqual({ answer: { state: "erased" } });
      expect(await ask("booking", "A")).toEqual({ answer: null });
      const read = { state: "active", readings: { consumerPhone: null } };
      expect(await ask("booking", "A", "consumerPhone,agentEmail")).toEqual({ answer: read });
      expect(await ask("activity", null)).toEqual({ answer: { hours: [], limits: { perSecond: 2.5 } } });
      expect(await ask("activity", "2027-05-02")).toEqual({ answer: { hours: [] } });
      expect(await ask("receipt", eventId)).toMatchObject({ code: "no-such-path", retryable: false });

      const paths = lookup.requests.map(({ path }) => path.replaceAll("%20", "+"));
      expect(paths.slice(1, 8)).toEqual([
        `/booking-event/receipt/${path}/${eventId}`,
        `/booking-event/receipt/${path}/a%2Fb`,
        `/booking-event/booking/${path}?reference=A+%26+%C3%9C&referenceKind=consumer`,
        `/booking-event/booking/${path}?reference=A&referenceKind=consumer`,
        `/booking-event/booking/${path}?reference=A&referenceKind=consumer&fields=consumerPhone%2CagentEmail`,
        `/booking-event/activity/${path}`,
        `/booking-event/activity/${path}?day=2027-05-02`,
      ]);
    });

    test("about a list streams it and its differences, and needs the summary", async () => {
      const summary = { references: 5_000, same: 4_999, missing: 1 };
      const difference = { reference: "Zoë 😀", result: "missing" };
      const payload = Array.from({ length: 5_000 }, (_, index) => ({
        reference: `Ü-${index}`,
        digest: "5f".repeat(32),
      }));
      const list = { method: "reconcile", payload };
      const complete = await call([{ status: 200, body: toLines(difference, { summary }) }], list);
      const cut = await call([{ status: 200, body: toLines(difference) }], list);
      const empty = await call([{ status: 200, body: toLines({ summary }) }], {
        ...list,
        payload: [],
        allowEmpty: true,
      });
      const refused = await call(
        [{ status: 400, body: { message: "M.", code: "invalid-list-line", violationList: violations } }],
        list,
      );

      expect(complete.result).toEqual({ answer: { items: [difference], end: summary } });
      expect(complete.requests[0]).toMatchObject({
        method: "POST",
        headers: { "content-type": "application/x-ndjson" },
      });
      const sent = complete.requests[0]?.body
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(sent).toEqual(payload);
      expect(cut.result).toMatchObject({ code: "network-error", retryable: true });
      expect(empty.result).toEqual({ answer: { items: [], end: summary } });
      expect(empty.requests[0]?.path).toMatch(/\?allowEmpty=true$/);
      expect(refused.result).toMatchObject({ code: "invalid-list-line", violations, retryable: false });
    });
  });

  test("a batch sends again what is not decided, with the same keys", async () => {
    const events = Array.from({ length: 130 }, (_, index) => {
      return {
        kind: "create",
        payload: { consumerTripPartnerExternalReference: `T-${index}` },
        idempotencyKey: `k-${index}`,
      };
    });
    const ok = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ line: index + 1, status: 200, eventId }));
    const notOurs = { line: 2, status: 403, code: "invalid-secret", message: "M." };
    const { result, requests } = await call(
      [
        {
          status: 200,
          body: toLines(...ok(30), { line: 31, status: 503, code: "queue-unavailable", message: "M." }),
        },
        unavailable,
        {
          status: 200,
          body: toLines(
            { line: 1, status: 422, code: "invalid-data", message: "M.", violationList: violations },
            notOurs,
            ...ok(38),
            // The last line of an answer that is too short: the secret is not valid any more.
            notOurs,
          ),
        },
        { status: 200, body: toLines(...ok(29), notOurs) },
        { status: 200, body: toLines(...ok(30)) },
      ],
      { method: "batch", payload: events },
    );

    const { items } = result.answer;
    expect(items).toHaveLength(130);
    expect(items[29]).toMatchObject({ line: 30, idempotencyKey: "k-29", status: 200, eventId });
    expect(items[30]).toMatchObject({ line: 31, idempotencyKey: "k-30", status: 422, violationList: violations });
    expect(items[129]).toMatchObject({ line: 130, idempotencyKey: "k-129" });
    const refused = items.filter(({ status }: { status: number }) => status === 403);
    expect(refused.map(({ line }: { line: number }) => line)).toEqual([32, 100]);
    const sent = requests.map(({ body }) =>
      body
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    );
    expect(sent.map(({ length }) => length)).toEqual([100, 70, 70, 30, 30]);
    expect(sent[1]).toEqual(events.slice(30, 100));
    expect(requests[0]?.path).toMatch(/^\/booking-event\/batch\//);
  });

  // The others see a broken connection instead, because their libraries do not read an answer before they have sent all.
  test.runIf(/Python|PHP/.test(language.name))("a batch that is refused before its end says so", async () => {
    const refusing = createServer((request, response) => {
      // As the service does: it answers, reads a part of the body, and closes the connection.
      response.writeHead(403, { "Content-Type": "application/json", Connection: "close" });
      response.write(JSON.stringify({ message: "M.", code: "invalid-secret" }));
      let bytes = 0;
      request.on("data", ({ length }) => {
        bytes += length;
        if (bytes > 262_144) response.end(() => request.pause());
      });
    });
    refusing.listen(0, "127.0.0.1");
    onTestFinished(() => void refusing.close());
    await once(refusing, "listening");
    const { port } = refusing.address() as AddressInfo;
    const event = { kind: "create", payload: { ...booking, notes: "x".repeat(60_000) } };
    const { result } = await call([], {
      baseUrl: `http://127.0.0.1:${port}`,
      method: "batch",
      payload: Array(100).fill(event),
    });

    expect(result).toMatchObject({ code: "invalid-secret", status: 403, retryable: false, attempts: 1 });
  });

  test("a batch that makes no progress ends", async () => {
    const stuck: Step = {
      status: 200,
      body: toLines({ line: 1, status: 503, code: "queue-unavailable", message: "M." }),
    };
    const payload = [{ kind: "delete", payload: booking }];
    const { result, requests } = await call([stuck], { method: "batch", payload, maxAttempts: 2 });

    expect(result).toMatchObject({ code: "queue-unavailable", retryable: true, attempts: 2 });
    expect(requests).toHaveLength(2);
  });

  test("a batch that is refused until tomorrow ends at once, and says so", async () => {
    const refused = { line: 2, status: 429, retryAfter: 40_000, code: "quota", message: "M." };
    const payload = [booking, booking].map((one) => ({ kind: "delete", payload: one }));
    const { result, requests } = await call(
      [
        { status: 200, body: toLines({ line: 1, status: 200, eventId }, refused) },
        { status: 200, body: toLines({ ...refused, line: 1 }) },
      ],
      { method: "batch", payload },
    );

    expect(result).toMatchObject({ code: "quota", message: "M.", status: 429, retryable: true, retryAfterS: 40_000 });
    expect(requests.length).toBeLessThanOrEqual(2);
  });

  test.each<[string, object]>([
    ["nothing", {}],
    ["whole floats", { a: { $float: "100.0" }, b: { $float: "1e2" }, c: { $float: "-0.0" }, d: 7 }],
    [
      "large and small numbers",
      { a: ["1e21", "1e20", "123456789012345680000", "1e-6", "1e-7", "1.5e300", "0.1"].map(($float) => ({ $float })) },
    ],
    [
      "big integers",
      {
        a: ["9007199254740993", "-9223372036854775807", "123456789012345678901234567890"].map(($integer) => ({
          $integer,
        })),
      },
    ],
    ["names in the order of UTF-16", { "\ue000": 1, "😀": 2, z: 3, é: 4, "10": 5, "9": 6, Z: 7, "": 8 }],
    ["texts that need escapes", { a: '"\\/\b\f\n\r\t\u0001\u001f\u007f\u2028\u2029é😀', '\n"': "\ufffd" }],
    ["what cannot be stored", { "\0a": "x\0y", b: ["\0"], "c\\u0000": "\\u0000" }],
    ["nested values", { list: [[], { $object: "" }, [1, [true, false, null]]], map: { b: { $object: "" }, a: [] } }],
    ["a list as a map's value", { "0": "a", "1": "b" }],
    ["days and times", { a: { $day: "2027-06-14" }, b: { $time: "2027-06-14T00:30:00+14:00" } }],
  ])("the digest of %s is what the service computes of what is sent", async (_, fields) => {
    const payload = { ...booking, ...fields };
    const { result } = await call([], { method: "digest", payload });
    const { requests } = await call([accepted], { payload });

    const stored = parseJsonObject(requests[0]?.body ?? "");
    replaceUnstorableText(stored);
    expect(result.answer).toBe(
      createHash("sha256")
        .update(toCanonicalJson(stored) ?? "")
        .digest("hex"),
    );
    const plain = JSON.parse(JSON.stringify(payload), (_name, value) => {
      const [[name, text] = [], ...others] = Object.entries(Object(value));
      return others.length === 0 && name === "$object"
        ? {}
        : /^\$(float|integer)$/.test(name ?? "")
          ? Number(text) + 0
          : value;
    });
    if (!("$day" in Object(plain.a))) expect(JSON.parse(requests[0]?.body ?? "")).toEqual(plain);
  });

  test("a day is sent as a day, and a time never as another day", async () => {
    const payload = {
      ...booking,
      consumerTripArrivalDate: { $day: "2027-06-14" },
      consumerTripReturnDate: { $time: "2027-06-20T00:30:00+14:00" },
    };
    const { requests } = await call([accepted], { payload });

    const { consumerTripArrivalDate, consumerTripReturnDate } = JSON.parse(requests[0]?.body ?? "");
    expect(consumerTripArrivalDate).toBe("2027-06-14");
    expect(consumerTripReturnDate).toMatch(/^2027-06-20T00:30(:00)?\+14:00$/);
  });
});

describe("a proxy is used as it is set for the language:", () => {
  test.each(partnerLanguages)("$name", async (language) => {
    const tunnels: string[] = [];
    const proxy = createServer();
    proxy.on("connect", ({ url = "" }, socket) => {
      tunnels.push(url);
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const { port } = proxy.address() as AddressInfo;
    const adapter = await startAdapter(language, port);
    const line = await adapter.ask({ ...defaults, baseUrl: "https://bookings.invalid", maxAttempts: 1 });
    adapter.stop();
    proxy.close();

    expect(JSON.parse(line).result).toMatchObject({ retryable: true });
    expect(tunnels).toEqual(["bookings.invalid:443"]);
  });
});
