import { randomRuns } from "@booking-events/harness/random-runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type EventEnvelope,
  eventKinds,
  isIdempotencyKey,
  parseEnvelope,
  parseEnvelopeText,
  parseJson,
} from "../index.ts";

const envelope: EventEnvelope = {
  version: 1,
  eventId: "01932f3e-7b3a-7c6e-9d2f-3a5b7c9d1e2f",
  kind: "create",
  partner: "acme",
  sequence: 1_764_000_000_000_000,
  receivedAt: "2026-06-14T07:27:17.335Z",
  idempotencyKey: "key-1",
  payload: { consumerTripPartnerExternalReference: "booking-2001", loyalty: { tier: "gold" } },
};

function problemOf(value: unknown): string {
  const result = parseEnvelope(value);
  return result.success ? "" : result.problem;
}

describe("an envelope", () => {
  test.each(eventKinds)("survives the trip through Redis: %s", (kind) => {
    const received: unknown = JSON.parse(JSON.stringify({ ...envelope, kind }));

    expect(parseEnvelope(received)).toEqual({ success: true, envelope: { ...envelope, kind } });
  });

  test("can also be parsed from its text", () => {
    expect(parseEnvelopeText(JSON.stringify(envelope))).toEqual({ success: true, envelope });
    expect(parseEnvelopeText("[]")).toMatchObject({ success: false, problem: "The envelope must be an object." });
  });

  test("names its fields as it was written, whatever was parsed before", () => {
    const [before, text] = ["\\", "\n"].map((name) =>
      JSON.stringify({ ...envelope, payload: { ...envelope.payload, [name]: 0 } }),
    );
    JSON.parse(before ?? "");

    const parsed = parseEnvelopeText(text ?? "");
    expect(parsed.success && Object.keys(parsed.envelope.payload).at(-1)).toBe("\n");
  });

  test.each([
    ["\\u0000 in a text", '{"a":"\\u0000"}'],
    ["\\u0000 in a name", '{"a":{"\\u0000":1}}'],
    ["an unpaired surrogate", '{"a":["\ud800"]}'],
    ["an escaped unpaired surrogate", '{"a":"\\udc00"}'],
    ["a number with too many digits", '{"a":[1e131072]}'],
    ["a number with too many digits after its point", '{"a":[1e-16384]}'],
    ["500 levels", `{"a":${"[".repeat(500)}${"]".repeat(500)}}`],
  ])("its text is refused like its value: %s", (_, extra) => {
    const text = JSON.stringify(envelope).replace('"payload":{', `"payload":${extra.slice(0, -1)},`);
    const problem = problemOf(parseJson(text));
    expect(problem).toMatch(/^payload\.a/);
    expect(parseEnvelopeText(text)).toMatchObject({ success: false, problem });
  });

  test("its numbers keep their digits", () => {
    const numbers = "[9007199254740993,1e131071,-1e-16383,0.1]";
    const text = JSON.stringify(envelope).replace('"payload":{', `"payload":{"a":${numbers},`);
    const parsed = parseEnvelopeText(text);
    expect(parsed.success && JSON.stringify(parsed.envelope.payload)).toContain(numbers);
  });

  test("its text may have escapes that stand for what can be stored", () => {
    const payload = { ...envelope.payload, note: "\\u0000", tag: "\ud83d\ude00" };
    const text = JSON.stringify({ ...envelope, payload }).replace("\ud83d\ude00", "\\ud83d\\ude00");
    expect(parseEnvelopeText(text)).toEqual({ success: true, envelope: { ...envelope, payload } });
  });

  test.each(["", "{", '{"canary": 1, }', "\0"])(
    "text that is not JSON yields a problem that does not quote it: %j",
    (text) => {
      expect(parseEnvelopeText(text)).toEqual({
        ...{ success: false, isOfLaterVersion: false },
        problem: "The envelope must be JSON.",
      });
    },
  );

  test("keeps the same payload object, with fields of any name", () => {
    const payload = JSON.parse('{"consumerPartnerExternalReference":"c","__proto__":{"a":1},"constructor":"b"}');

    const result = parseEnvelope({ ...envelope, payload });

    expect(result.success && result.envelope.payload).toBe(payload);
  });

  test("may have no idempotency key", () => {
    expect(parseEnvelope({ ...envelope, idempotencyKey: null }).success).toBe(true);
  });

  test.each([
    ["s1", "s1"],
    [null, null],
    ["no id of a secret", null],
    [7, null],
  ])("says by which secret the event came: %j is read as %j, and never refused", (secretId, read) => {
    expect(parseEnvelope({ ...envelope, secretId })).toEqual({
      success: true,
      envelope: { ...envelope, secretId: read },
    });
  });

  test.each([
    ["GB", "GB"],
    [null, null],
    ["gb", null],
    ["GBR", null],
    [44, null],
  ])("says by which country phone numbers are read: %j is read as %j, and never refused", (defaultCountry, read) => {
    expect(parseEnvelope({ ...envelope, defaultCountry })).toEqual({
      success: true,
      envelope: { ...envelope, defaultCountry: read },
    });
  });

  test.each([
    [
      ["similar-name", "unreadable-phone"],
      ["similar-name", "unreadable-phone"],
    ],
    [["of-a-later-release"], ["of-a-later-release"]],
    [["two words"], []],
    [[7], []],
    ["similar-name", []],
  ])("says what the partner was warned of: %j is read as %j, and never refused", (warnings, read) => {
    expect(parseEnvelope({ ...envelope, warnings })).toEqual({
      success: true,
      envelope: { ...envelope, warnings: read },
    });
  });

  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

  test.each([
    [traceparent, traceparent],
    [null, null],
    // Not sampled, so there is no trace to continue.
    [traceparent.replace(/01$/, "00"), null],
    [traceparent.toUpperCase(), null],
    [traceparent.replace(/^00-\w+/, `00-${"0".repeat(32)}`), null],
    [traceparent.replace(/-\w{16}-/, `-${"0".repeat(16)}-`), null],
    [`${traceparent}-x`, null],
    ["no trace", null],
    [7, null],
  ])("names the trace to which the event belongs: %j is read as %j, and never refused", (sent, read) => {
    expect(parseEnvelope({ ...envelope, traceparent: sent })).toEqual({
      success: true,
      envelope: { ...envelope, traceparent: read },
    });
  });

  test("may have unknown fields from a later release of the same version", () => {
    expect(parseEnvelope({ ...envelope, fieldOfALaterRelease: 1 })).toEqual({ success: true, envelope });
  });

  test.each([
    [{ version: 2 }, true],
    [{ version: 3_000 }, true],
    [{ version: 0 }, false],
    [{ version: 1.5 }, false],
    [{ version: "2" }, false],
    [{ version: null }, false],
    [{}, false],
  ])("of a later or invalid version is reported as such: %o", (start, isOfLaterVersion) => {
    const { version: _, ...rest } = envelope;

    expect(parseEnvelope({ ...start, ...rest })).toMatchObject({ success: false, isOfLaterVersion });
  });

  test.each([{ version: 2 }, { version: "1" }, { version: null }, {}])(
    "of another version is reported as such: %o",
    (start) => {
      const { version: _, ...rest } = envelope;

      expect(problemOf({ ...start, ...rest, sequence: "wrong too" })).toMatch(
        /^The envelope's version is unknown: this release reads only version 1\./,
      );
    },
  );

  test.each([[undefined], [null], ["{}"], [7], [[]], [[envelope]]])("must be an object, not %j", (value) => {
    expect(problemOf(value)).toBe("The envelope must be an object.");
  });

  test.each(["eventId", "kind", "partner", "sequence", "receivedAt", "idempotencyKey", "payload"] as const)(
    "must have its %s",
    (name) => {
      const { [name]: _, ...rest } = envelope;

      expect(problemOf(rest)).toBe(`${name}: Must be present.`);
    },
  );

  test.each<[keyof EventEnvelope, unknown[]]>([
    ["eventId", [null, 7, "", "01932f3e", "01932F3E-7B3A-7C6E-9D2F-3A5B7C9D1E2F", `${envelope.eventId}\n`]],
    ["kind", [null, 7, "", "Create", "cancel", ["create"]]],
    ["partner", [null, 7, "", "ac\0me", "\ud800"]],
    ["sequence", [null, "7", 0, -1, 1.5, 2 ** 53, Number.NaN, 7n]],
    ["receivedAt", [null, 1_764_000_000_000, "", "2026-06-14", "2026-06-14T07:27:17Z", "2026-06-31T07:27:17.335Z"]],
    ["idempotencyKey", [7, "", "two\twords", "é", "x".repeat(256), "line\n"]],
    ["payload", [null, 7, "{}", [], [envelope.payload]]],
  ])("must have a right %s", (name, values) => {
    for (const value of values) {
      const problem = problemOf({ ...envelope, [name]: value });

      expect(problem).toMatch(/^\w+: Must (?:not )?be .+\.$/);
      expect(problem.split(": Must ")).toEqual([name, expect.any(String)]);
    }
  });

  test("with several invalid fields names each of them", () => {
    const problem = problemOf({ ...envelope, eventId: 7, sequence: 0, receivedAt: "" });

    expect(problem).toMatch(/^eventId: .+\. sequence: .+\. receivedAt: .+\.$/);
  });
});

describe("the payload of an envelope", () => {
  const problemWith = (kind: string, payload: object) => problemOf({ ...envelope, kind, payload });
  const reference = { consumerTripPartnerExternalReference: "booking-2001" };

  test.each(eventKinds)("may violate today's rules for partners, because it was already accepted: %s", (kind) => {
    const deep = JSON.parse(`${'{"a":'.repeat(400)}1${"}".repeat(400)}`);
    const payload = {
      ...{ consumerTripPartnerExternalReference: "x".repeat(2_000), consumerPhone: 7, consumerTripBookingDate: "2026" },
      ...{ deep, many: Array.from({ length: 5_000 }, () => 2 ** 60) },
    };

    expect(problemWith(kind, payload)).toBe("");
  });

  test.each(eventKinds)("must identify a booking: %s", (kind) => {
    const reference = "payload.consumerTripPartnerExternalReference: Must be";
    expect(problemWith(kind, {})).toContain(`${reference} present`);
    expect(problemWith(kind, { consumerPartnerExternalReference: " \u200b" })).toContain(`${reference} present`);
    for (const wrong of [null, 7, ["T"]])
      expect(problemWith(kind, { consumerTripPartnerExternalReference: wrong })).toContain(`${reference} a string`);
  });

  test.each([
    ["text", "\0", "payload.at: Must not contain"],
    ["nested text", [{ b: "\ud800" }], "payload.at.0.b: Must not contain"],
    ["a name", { "\0": 1 }, "The field name"],
    ["a number", JSON.parse("1e400"), "payload.at: Must be a finite number"],
    ["deep nesting", JSON.parse(`${"[".repeat(9_000)}${"]".repeat(9_000)}`), "Must be nested at most 500 levels deep"],
  ])("must be storable: %s", (_, at, problem) => {
    expect(problemWith("create", { ...reference, at })).toContain(problem);
  });

  test("is named by its path, whatever the name of the field", () => {
    expect(problemWith("create", { ...reference, notes: [{ "a b\0\ud800": 1 }] })).toMatch(
      /^payload\.notes\.0\["a b\\u0000\\ud800"\]: The field name/,
    );
  });

  test("yields a problem of bounded length, in text that PostgreSQL can store", () => {
    const names = Array.from(
      { length: 60 },
      (_, index) => `${"x".repeat(index % 2)}${index}\0\ud83d${"😀".repeat(200)}`,
    );
    const deep = Object.fromEntries(names.map((name) => [name, { [name]: "\0" }]));

    const problem = problemWith("create", { ...reference, deep });

    expect(problem.length).toBeLessThan(1_000);
    expect(problem.isWellFormed()).toBe(true);
    expect(problem).not.toContain("\0");
  });
});

test("a problem never repeats a value", () => {
  const canary = "canary";
  const value = fc.oneof(
    fc.string().map((text) => canary + text),
    fc.constant([canary]),
    fc.constant({ canary: `${canary}\0` }),
    fc.constant(7_744_221_199.5),
  );
  const broken = fc.record(
    {
      version: fc.oneof(fc.constant(1), value),
      eventId: value,
      kind: fc.oneof(fc.constantFrom(...eventKinds), value),
      partner: value,
      sequence: fc.oneof(fc.constant(7), value),
      receivedAt: value,
      idempotencyKey: value,
      payload: fc.oneof(value, fc.dictionary(fc.constantFrom("consumerPhone", "agentEmail", "extra"), value)),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(broken, (fields) => {
      // Valid except for the fields that the run replaces, so the payload's rules are reached too.
      const problem = problemOf({ ...envelope, ...fields }).replaceAll(/\.canary\b/g, "");

      expect(problem).not.toContain(canary);
      expect(problem).not.toContain("7744221199");
    }),
    randomRuns(500),
  );
});

describe("isIdempotencyKey", () => {
  test("accepts 1 to 255 visible ASCII characters and spaces", () => {
    expect(isIdempotencyKey("x")).toBe(true);
    expect(isIdempotencyKey("x".repeat(255))).toBe(true);
    for (let code = 0x20; code <= 0x7e; code += 1) expect(isIdempotencyKey(String.fromCharCode(code))).toBe(true);
  });

  test("refuses any other", () => {
    const others = [0, 9, 10, 13, 0x1f, 0x7f, 0x80, 0xa0, 0xe9, 0x2028, 0xd83d];

    expect(isIdempotencyKey("")).toBe(false);
    expect(isIdempotencyKey("x".repeat(256))).toBe(false);
    for (const code of others) {
      expect(isIdempotencyKey(String.fromCharCode(code))).toBe(false);
      expect(isIdempotencyKey(`a${String.fromCharCode(code)}`)).toBe(false);
      expect(isIdempotencyKey(`a${String.fromCharCode(code)}b`)).toBe(false);
    }
  });
});
