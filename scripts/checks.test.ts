import { expect, test } from "vitest";
import { summaryLine } from "./checks.ts";

const passedFile = { status: "passed", assertionResults: [{ status: "passed" }] };
const failedFile = { status: "failed", assertionResults: [{ status: "passed" }, { status: "failed" }] };
const brokenFile = { status: "failed", assertionResults: [] };

test.each([
  ["all passed", 3, 0, [passedFile], 0, "3 passed, 0 failed"],
  ["tests failed", 3, 2, [passedFile, failedFile], 1, "3 passed, 2 failed"],
  ["a file could not be loaded", 3, 0, [passedFile, brokenFile], 1, "3 passed, 1 failed"],
  ["tests failed and a file could not be loaded", 3, 1, [failedFile, brokenFile], 1, "3 passed, 2 failed"],
  ["an error came from outside the tests", 3, 0, [passedFile], 1, "3 passed, 1 failed"],
])("when %s, the summary says so", (_case, numPassedTests, numFailedTests, testResults, exitCode, line) => {
  expect(summaryLine({ numPassedTests, numFailedTests, testResults }, exitCode)).toBe(line);
});
