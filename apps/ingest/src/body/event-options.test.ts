import { describe, expect, test } from "vitest";
import { readEventOptions } from "./event-options.ts";

/** As Node gives them: values of a repeated header are joined. */
function read(...sent: (readonly [name: string, value: string])[]) {
  const headers: Record<string, string> = {};
  for (const [name, value] of sent) headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  return readEventOptions({ headers, rawHeaders: sent.flatMap(([name, value]) => [name.toUpperCase(), value]) });
}

const key = (value: string) => ["idempotency-key", value] as const;
const id = (value: string) => ["webhook-id", value] as const;

describe("the idempotency key", () => {
  test.each([
    [[], null],
    [[key("k1")], "k1"],
    [[key("order 7, version 2")], "order 7, version 2"],
    [[key("x".repeat(255))], "x".repeat(255)],
    [[key(`"${"x".repeat(255)}"`)], "x".repeat(255)],
    [[key('"8e03978e"')], "8e03978e"],
    [[key('"a"b"')], 'a"b'],
    [[key('"a')], '"a'],
    [[key('"')], '"'],
    [[key("k1"), key("k1")], "k1"],
    [[key("a, b"), key("a, b")], "a, b"],
    [[key("k1"), key('"k1"')], "k1"],
    [[id("msg_1")], "msg_1"],
    [[id("msg_1"), id("msg_1")], "msg_1"],
    // The other header is not looked at.
    [[key("k1"), id("msg_1")], "k1"],
    [[key("k1"), id("")], "k1"],
    [[key("k1"), id("Zo\u00eb"), id("x")], "k1"],
  ])("of %j is %j, without a warning", (headers, expected) => {
    expect(read(...headers)).toEqual({ idempotencyKey: expected, isDryRun: false, warnings: [] });
  });

  test.each([
    [[key("")], null],
    [[key('""')], null],
    [[key(""), key("")], null],
    [[key(""), key("k1")], "k1"],
    [[id("")], null],
    [[key(""), id("msg_1")], "msg_1"],
    [[key(""), id("")], null],
  ])("of %j is %j, and a warning says that one is empty", (headers, expected) => {
    const { idempotencyKey, warnings } = read(...headers);
    expect(idempotencyKey).toBe(expected);
    const message = expect.stringContaining("is empty and counts as absent");
    expect(warnings).toEqual([{ message, code: "empty-key", propertyPath: [], field: "" }]);
  });

  test.each([
    [[key("Zo\u00eb")]],
    [[key("a\tb")]],
    [[key("x".repeat(256))]],
    [[id("x".repeat(256))]],
    [[key(""), id("\u00e9")]],
  ])("of %j is refused", (headers) => {
    expect(() => read(...headers)).toThrow("invalid-idempotency-key");
  });

  test.each([
    [[key("k1"), key("k2")]],
    [[key("k1"), key("K1")]],
    [[id("k1"), id("k2")]],
    [[key("k1"), key(""), key("k2")]],
  ])("of %j is refused, because either may be the intended one", (headers) => {
    expect(() => read(...headers)).toThrow("different-idempotency-keys");
  });
});

describe("a dry run", () => {
  const isDryRun = (value: string) => read(["x-dry-run", value]).isDryRun;

  test.each(["true", "TRUE", "1", "yes", "Yes"])("is asked for by %j", (value) => expect(isDryRun(value)).toBe(true));

  test.each(["false", "False", "0", "no", "NO", ""])("is not asked for by %j", (value) =>
    expect(isDryRun(value)).toBe(false),
  );

  test.each(["on", "2", "true, true", "ture", "nein"])("is perhaps asked for by %j, which is refused", (value) => {
    expect(() => isDryRun(value)).toThrow("invalid-dry-run");
  });
});
