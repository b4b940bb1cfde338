import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Step, startScriptedReceiver } from "@booking-events/harness/scripted-receiver";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

/** Of the clients that partners copy. Where a language is missing, its tests are skipped, and their title says so. */
const folder = fileURLToPath(new URL("../../../docs/clients/", import.meta.url));
const secret = "partner-secret/canary+5f2c81";
const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const booking = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Zoë 😀" };

/**
 * Both read a call from each line and print the answer or the error as JSON, with all that their language shows of it.
 * To start a process for each call would take longer than all calls.
 */
const python = `
import json, sys, traceback
from booking_events import BookingEvents, BookingEventsError
for line in sys.stdin:
    call = json.loads(line)
    shown = []
    try:
        client = BookingEvents(call["baseUrl"], call["secret"], first_retry_delay=0.001, max_attempts=call["maxAttempts"],
                               attempt_timeout=call["attemptTimeoutS"], total_timeout=call["totalTimeoutS"])
        shown += [repr(client), str(client)]
        send = getattr(client, call["kind"])
        result = {"answer": send(call["payload"], idempotency_key=call["key"], dry_run=call["dryRun"])}
    except BookingEventsError as error:
        result = {"message": str(error), **vars(error)}
        shown += [traceback.format_exc(), str(error.__cause__), str(error.__context__)]
    except ValueError as error:
        result = {"invalid": str(error)}
        shown += [traceback.format_exc()]
    print(json.dumps({"result": result, "shown": shown}), flush=True)
`;
const php = `
require 'BookingEvents.php';
while (($line = fgets(STDIN)) !== false) {
    $call = json_decode($line, true);
    $shown = [];
    try {
        $client = new BookingEvents($call['baseUrl'], $call['secret'], firstRetryDelay: 0.001, maxAttempts: $call['maxAttempts'],
            attemptTimeout: $call['attemptTimeoutS'], totalTimeout: $call['totalTimeoutS']);
        $shown = [print_r($client, true), var_export($client, true), json_encode((array) $client)];
        $answer = $client->{$call['kind']}($call['payload'], idempotencyKey: $call['key'], dryRun: $call['dryRun']);
        $result = ['answer' => $answer];
    } catch (BookingEventsError $error) {
        $result = [
            'message' => $error->getMessage(),
            'code' => $error->reason,
            'retryable' => $error->retryable,
            'attempts' => $error->attempts,
            'idempotency_key' => $error->idempotencyKey,
            'status' => $error->status,
            'request_id' => $error->requestId,
            'violations' => $error->violations,
            'retry_after' => $error->retryAfter,
        ];
        $shown[] = (string) $error;
    } catch (InvalidArgumentException $error) {
        $result = ['invalid' => $error->getMessage()];
        $shown[] = (string) $error;
    }
    echo json_encode(['result' => $result, 'shown' => $shown]), "\n";
}
`;

const languages = [
  { name: "Python", program: "python3", args: ["-c", python], needs: ["-c", "import ssl"] },
  { name: "PHP", program: "php", args: ["-r", php], needs: ["-r", "exit(extension_loaded('curl') ? 0 : 1);"] },
].map((language) => {
  const isHere = spawnSync(language.program, language.needs).status === 0;
  return { ...language, isHere, title: isHere ? language.name : `${language.name} (${language.program} is missing)` };
});

const accepted: Step = { status: 200, body: { success: true, eventId } };
const unavailable: Step = {
  status: 503,
  headers: { "Retry-After": "0" },
  body: { message: "The event could not be stored.", code: "queue-unavailable" },
};
const invalidSecret: Step = { status: 403, body: { message: "Invalid secret", code: "invalid-secret" } };

describe.each(languages)("in $title,", ({ program, args, isHere }) => {
  let interpreter: Interpreter;
  beforeAll(() => {
    interpreter = startInterpreter(program, args);
  });
  afterAll(() => interpreter.stop());

  async function call(steps: readonly Step[], options: Record<string, unknown> = {}) {
    const receiver = await startScriptedReceiver(steps);
    onTestFinished(receiver.close);
    const input = {
      baseUrl: receiver.url,
      secret,
      kind: "create",
      payload: booking,
      key: null,
      dryRun: false,
      maxAttempts: 5,
      attemptTimeoutS: 10,
      totalTimeoutS: 60,
      ...options,
    };
    const line = await interpreter.ask(JSON.stringify(input));
    // With a placeholder, the word is in other places, too.
    if (input.secret === secret) expect(line).not.toMatch(/partner-secret|canary/);
    const { result, shown } = JSON.parse(line);
    expect(shown.join("")).not.toBe("");
    return { result, requests: receiver.requests };
  }

  test.skipIf(!isHere).each(["create", "update", "delete"])(
    "%s sends the path, type, key and payload",
    async (kind) => {
      const { result, requests } = await call([accepted], { kind, key: 'TRIP 1 "version" 3' });

      expect(result).toEqual({ answer: { success: true, eventId } });
      expect(requests).toMatchObject([
        {
          method: "POST",
          path: `/booking-event/${kind}/partner-secret%2Fcanary%2B5f2c81`,
          headers: { "content-type": "application/json", "idempotency-key": 'TRIP 1 "version" 3' },
        },
      ]);
      expect(JSON.parse(requests[0]?.body ?? "")).toEqual(booking);
      expect(requests[0]?.headers).not.toHaveProperty("x-dry-run");
    },
  );

  test.skipIf(!isHere)("warnings are part of the answer, and are not retried", async () => {
    const body = { success: true, eventId, warnings: [{ message: "…", code: "no-time-zone", propertyPath: ["x"] }] };
    const { result, requests } = await call([{ status: 200, body }]);

    expect(result).toEqual({ answer: body });
    expect(requests).toHaveLength(1);
  });

  test.skipIf(!isHere)("a dry run says so, and is no success if the event was stored", async () => {
    const { result, requests } = await call([{ status: 200, body: { success: true, dryRun: true } }], { dryRun: true });
    expect(result).toEqual({ answer: { success: true, dryRun: true } });
    expect(requests[0]?.headers["x-dry-run"]).toBe("true");

    const { result: stored } = await call([accepted], { dryRun: true, maxAttempts: 1 });
    expect(stored).toMatchObject({ code: "unexpected-answer" });
  });

  test.skipIf(!isHere).each<[string, Step]>([
    ["408", { status: 408, body: { message: "…", code: "too-slow" } }],
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

  test.skipIf(!isHere)("the attempts end after the given number", async () => {
    const { result, requests } = await call([unavailable], { maxAttempts: 3, key: "k" });

    expect(requests).toHaveLength(3);
    expect(result).toMatchObject({
      ...{ code: "queue-unavailable", status: 503, retryable: true, retry_after: 0, attempts: 3, idempotency_key: "k" },
      message: "The event could not be stored.",
    });
  });

  test.skipIf(!isHere).each(["3600", "Sun, 22 Nov 2026 13:00:00 GMT"])(
    "Retry-After %s, later than the end of the call, ends it",
    async (retryAfter) => {
      const headers = { "Retry-After": retryAfter, Date: "Sun, 22 Nov 2026 12:00:00 GMT" };
      const { result, requests } = await call([
        { status: 429, headers, body: { message: "…", code: "over-rate-limit" } },
      ]);

      expect(requests).toHaveLength(1);
      expect(result).toMatchObject({ code: "over-rate-limit", retryable: true, retry_after: 3_600 });
    },
  );

  test.skipIf(!isHere).each<[string, Step, object]>([
    ["403", invalidSecret, { code: "invalid-secret", status: 403 }],
    ["404 of something else", { status: 404, body: "<h1>Not found</h1>" }, { code: "unexpected-answer", status: 404 }],
    ["a redirect", { status: 307, headers: { Location: "/elsewhere" } }, { code: "redirected", status: 307 }],
    [
      "422",
      {
        status: 422,
        headers: { "X-Request-Id": eventId },
        body: { message: "Invalid data", code: "invalid-data", violationList: [{ message: "…", propertyPath: ["a"] }] },
      },
      { code: "invalid-data", request_id: eventId, violations: [{ message: "…", propertyPath: ["a"] }] },
    ],
  ])("%s is not retried", async (_, step, details) => {
    const { result, requests } = await call([step, accepted]);

    expect(result).toMatchObject({ ...details, retryable: false, attempts: 1 });
    expect(requests).toHaveLength(1);
  });

  // `call` looks for the secret in all that is printed.
  test
    .skipIf(!isHere)
    .each<[string, Step[], Record<string, unknown>]>([
      ["a refusal", [{ status: 403, body: { message: `No ${secret}`, code: encodeURIComponent(secret) } }], {}],
      ["a page", [{ status: 404, headers: { "X-Request-Id": secret }, body: `<p>${secret}</p>` }], {}],
      ["a redirect", [{ status: 301, headers: { Location: `/v2/${secret}` } }], {}],
      ["a broken connection", ["disconnect"], { maxAttempts: 1 }],
      ["a host that is not there", [accepted], { baseUrl: "http://127.0.0.1:9", maxAttempts: 1 }],
      ["an address with the secret", [accepted], { baseUrl: `https://localhost/booking-event/create/${secret}` }],
      ["an address without TLS", [accepted], { baseUrl: "http://bookings.example.com" }],
      ["a secret with a line break", [accepted], { secret: "partner-secret-canary\n" }],
      ...["", " ", "two\nlines", "space ", '"quoted"', "x".repeat(256)].map(
        (key): [string, Step[], Record<string, unknown>] => [
          `the key ${JSON.stringify(key.slice(0, 9))}`,
          [accepted],
          { key },
        ],
      ),
    ])("the secret is not in the error of %s", async (_, steps, options) => {
    const { result } = await call(steps, options);

    expect(result).not.toHaveProperty("answer");
  });

  test.skipIf(!isHere)("a short placeholder for the secret does not change the service's words", async () => {
    const { result } = await call([invalidSecret], { secret: "secret" });

    expect(result).toMatchObject({ code: "invalid-secret", message: "Invalid secret" });
  });
});

interface Interpreter {
  /** Resolves to the line that it prints for this one. Rejects if it has printed something else, or has ended. */
  ask(line: string): Promise<string>;
  stop(): void;
}

function startInterpreter(program: string, args: readonly string[]): Interpreter {
  const child = spawn(program, args, { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      if (done || errors !== "") throw new Error(`${program} printed: ${errors}`);
      return value;
    },
    stop: () => child.stdin.end(),
  };
}
