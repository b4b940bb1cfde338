import { expect, test } from "vitest";
import { accepted, dryRunPassed, invalid, invalidAt, refused, secretRefused } from "./expectations.ts";

const eventId = "01a1fafe-d690-7608-9309-bff7f221cbc9";
const json = { "content-type": "application/json; charset=utf-8" };
const full = { dryRunOnly: false, profile: "full" } as const;
const violation = { message: "Must be a string.", propertyPath: ["a", "0"] };
const invalidData = { message: "Invalid data", violationList: [violation] };

function answer(status: number, body: unknown, headers: Record<string, string> = json) {
  return { status, headers, head: "", body: typeof body === "string" ? body : JSON.stringify(body) };
}

test.each([
  [accepted, answer(200, { success: true, eventId })],
  [dryRunPassed, answer(200, { success: true, dryRun: true })],
  [refused(405, { allows: "POST" }), answer(405, { message: "No", code: "no" }, { ...json, allow: "GET, POST" })],
  [refused(400, { says: /\b2\b/ }), answer(400, { message: "line 2" })],
  [secretRefused, answer(403, { message: "Invalid secret" })],
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
  ["the body has no message", refused(400), answer(400, "null")],
  ["the message does not match /\\b2\\b/", refused(400, { says: /\b2\b/ }), answer(400, { message: "line 3" })],
  ["the Allow header does not name POST", refused(405, { allows: "POST" }), answer(405, { message: "No" })],
  ['the message is not "Invalid secret"', secretRefused, answer(403, { message: "Expired secret" })],
  ['the message is not "Invalid data"', invalid(["a", "0"]), answer(422, { ...invalidData, message: "Wrong" })],
  ['the violations are at [["a","0"]], not at [["b"]]', invalid(["b"]), answer(422, invalidData)],
  ['no violation is at ["b"]', invalidAt("b"), answer(422, invalidData)],
  ["the answer contains half of a surrogate pair", refused(400), answer(400, '{"message":"\\ud83d"}')],
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

test("the specification alone demands no eventId", () => {
  expect(accepted(answer(200, { success: true }), { dryRunOnly: false, profile: "spec" })).toEqual([]);
});
