import { expect, test } from "vitest";
import { summaryLine, type TestFile } from "./summary-reporter.ts";

function file(state: string, ...tests: string[]): TestFile {
  return {
    state: () => state,
    children: { allTests: () => tests.map((test) => ({ result: () => ({ state: test }) })) },
  };
}

const passedFile = file("passed", "passed", "passed", "skipped");
const failedFile = file("failed", "passed", "failed");
const brokenFile = file("failed");

test.each([
  ["all passed", [passedFile, passedFile], true, "4 passed, 0 failed"],
  ["a test failed", [passedFile, failedFile], false, "3 passed, 1 failed"],
  ["a file could not be loaded", [passedFile, brokenFile], false, "2 passed, 1 failed"],
  ["a test failed and a file could not be loaded", [failedFile, brokenFile], false, "1 passed, 2 failed"],
  ["an error came from outside the tests", [passedFile], false, "2 passed, 1 failed"],
])("when %s, the summary says so", (_case, files, runPassed, line) => {
  expect(summaryLine(files, runPassed)).toBe(line);
});
