import { expect, test } from "vitest";
import { accepted, dryRunPassed, invalid, invalidAt, refused, secretRefused, warned } from "./expectations.ts";

const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const json = { "content-type": "application/json; charset=utf-8" };
const full = { dryRunOnly: false, profile: "full" } as const;
const violation = { message: "Must be a string.", propertyPath: ["a", "0"] };
const invalidData = { message: "Invalid data", code: "invalid-data", violationList: [violation] };
const warning = { message: "Correct it.", code: "similar-name", propertyPath: ["a"] };

function answer(status: number, body: unknown, headers: Record<string, string> = json) {
  return { status, headers, head: "", body: typeof body === "string" ? body : JSON.stringify(body) };
}

test.each([
  [accepted, answer(200, { success: true, eventId })],
  [dryRunPassed, answer(200, { success: true, dryRun: true })],
  [refused(405, "no", { allows: "POST" }), answer(405, { message: "No", code: "no" }, { ...json, allow: "GET, POST" })],
  [refused(400, "x", { says: /\b2\b/ }), answer(400, { message: "line 2", code: "x" })],
  [secretRefused, answer(403, { message: "Invalid secret", code: "invalid-secret" })],
  [warned({ code: "similar-name", propertyPath: ["a"] }), answer(200, { success: true, eventId, warnings: [warning] })],
  [invalid(["a", "0"]), answer(422, invalidData)],
  [
    invalidAt("a", "0"),
    answer(422, { ...invalidData, violationList: [{ ...violation, propertyPath: [] }, violation] }),
  ],
])("a right answer has no faults: %#", (expectation, right) => {
  expect(expectation(right, full)).toEqual([]);
});

test.each([
  ["the status is 503, not 200", accepted, answer(503, "")],
  ["the answer is not application/json", accepted, answer(200, { success: true, eventId }, {})],
  ['the body has no "success": true', accepted, answer(200, { eventId })],
  ["eventId is not a UUID", accepted, answer(200, { success: true })],
  ['the body has no "dryRun": true', dryRunPassed, answer(200, { success: true, eventId })],
  ["the body has no message", refused(400, "x"), answer(400, { code: "x" })],
  ['the code is not "x"', refused(400, "x"), answer(400, { message: "No" })],
  ['the code is not "invalid-secret"', secretRefused, answer(403, { message: "Invalid secret" })],
  ['the code is not "invalid-data"', invalid(["a", "0"]), answer(422, { ...invalidData, code: "other" })],
  [
    "the message does not match /\\b2\\b/",
    refused(400, "x", { says: /\b2\b/ }),
    answer(400, { message: "line 3", code: "x" }),
  ],
  [
    "the Allow header does not name POST",
    refused(405, "x", { allows: "POST" }),
    answer(405, { message: "No", code: "x" }),
  ],
  [
    'the message is not "Invalid secret"',
    secretRefused,
    answer(403, { message: "Expired secret", code: "invalid-secret" }),
  ],
  ['the message is not "Invalid data"', invalid(["a", "0"]), answer(422, { ...invalidData, message: "Wrong" })],
  ['the violations are at [["a","0"]], not at [["b"]]', invalid(["b"]), answer(422, invalidData)],
  ['no violation is at ["b"]', invalidAt("b"), answer(422, invalidData)],
  ["the answer contains half of a surrogate pair", refused(400, "x"), answer(400, '{"message":"\\ud83d","code":"x"}')],
  [
    'no warning is {"code":"similar-name","propertyPath":["b"]}',
    warned({ code: "similar-name", propertyPath: ["b"] }),
    answer(200, { success: true, eventId, warnings: [warning] }),
  ],
  [
    "violationList is not a list of { message, propertyPath }",
    invalid(["a"]),
    answer(422, { ...invalidData, violationList: [{ propertyPath: ["a"] }] }),
  ],
])("a fault is named, and it is the only one: %s", (fault, expectation, wrong) => {
  expect(expectation(wrong, full)).toEqual([fault]);
});

test("with dry runs only, an event that was stored is a fault", () => {
  const stored = answer(200, { success: true, eventId });

  expect(accepted(stored, { ...full, dryRunOnly: true })).toEqual(['the body has no "dryRun": true']);
});

test("the specification alone demands no eventId and no codes", () => {
  const spec = { dryRunOnly: false, profile: "spec" } as const;
  expect(accepted(answer(200, { success: true }), spec)).toEqual([]);
  expect(secretRefused(answer(403, { message: "Invalid secret" }), spec)).toEqual([]);
  expect(invalid(["a", "0"])(answer(422, { ...invalidData, code: undefined }), spec)).toEqual([]);
});
