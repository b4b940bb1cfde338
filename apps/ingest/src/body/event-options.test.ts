import { describe, expect, test } from "vitest";
import { readEventOptions } from "./event-options.ts";

describe("the idempotency key", () => {
  test.each([
    [{}, null],
    [{ "idempotency-key": "k1" }, "k1"],
    [{ "webhook-id": "msg_1" }, "msg_1"],
    [{ "idempotency-key": "k1", "webhook-id": "k1" }, "k1"],
    [{ "idempotency-key": '"8e03978e"' }, '"8e03978e"'],
    [{ "idempotency-key": "x".repeat(255) }, "x".repeat(255)],
  ])("of %j is %j", (headers, key) => {
    expect(readEventOptions(headers).idempotencyKey).toBe(key);
  });

  test.each([
    { "idempotency-key": "" },
    { "webhook-id": "" },
    { "idempotency-key": "a b" },
    { "idempotency-key": "Zoë" },
    { "idempotency-key": "x".repeat(256) },
    // Node joins the values of a repeated header.
    { "idempotency-key": "k1, k2" },
    { "idempotency-key": "k1, k1" },
    { "webhook-id": "k1, k2" },
    { "idempotency-key": "", "webhook-id": "msg_1" },
    { "idempotency-key": "msg_1", "webhook-id": "" },
    { "idempotency-key": "msg_1", "webhook-id": "a b" },
    { "idempotency-key": "", "webhook-id": "" },
  ])("of %j is refused", (headers) => {
    expect(() => readEventOptions(headers)).toThrow("invalid-idempotency-key");
  });
});

test("two different keys are refused, because either may be the intended one", () => {
  const headers = { "idempotency-key": "k1", "webhook-id": "K1" };
  expect(() => readEventOptions(headers)).toThrow("different-idempotency-keys");
});

describe("a dry run", () => {
  test.each([
    [{}, false],
    [{ "x-dry-run": "true" }, true],
    [{ "x-dry-run": "TRUE" }, true],
    [{ "x-dry-run": "false" }, false],
  ])("%j: %j", (headers, isDryRun) => {
    expect(readEventOptions(headers).isDryRun).toBe(isDryRun);
  });

  test.each(["", "1", "yes", "true, true", "ture"])("%j is refused and not queued", (value) => {
    expect(() => readEventOptions({ "x-dry-run": value })).toThrow("invalid-dry-run");
  });
});
