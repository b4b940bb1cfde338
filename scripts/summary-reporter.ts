import type { Reporter } from "vitest/node";

/** As much of vitest's report on a file as the summary needs. */
export interface TestFile {
  state(): string;
  children: { allTests(): Iterable<{ result(): { state: string } }> };
}

/** Prints one line that a machine can read, under vitest's own summary. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(files: readonly TestFile[], errors: readonly unknown[], reason: string): void {
    console.log(`\n${summaryLine(files, reason === "passed" && errors.length === 0)}`);
  }
}

/**
 * "12 passed, 0 failed". A file that fails outside its tests counts as one failure, and so does a run that failed for
 * another reason, such as an error that no test caught.
 */
export function summaryLine(files: readonly TestFile[], runPassed: boolean): string {
  let [passed, failed] = [0, 0];
  for (const file of files) {
    const states = [...file.children.allTests()].map((test) => test.result().state);
    const failures = states.filter((state) => state === "failed").length;
    passed += states.filter((state) => state === "passed").length;
    failed += failures === 0 && file.state() === "failed" ? 1 : failures;
  }
  return `${passed} passed, ${failed === 0 && !runPassed ? 1 : failed} failed`;
}
