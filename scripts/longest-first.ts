import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Vitest has started these when it knows no durations, as in a new clone, in the order of the files' sizes: too late. */
const longest = ["tests/e2e/npm-start", "tests/e2e/least-privilege", "tests/e2e/outages"];

/** Begins with the longest files, so that no CPU is idle in the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => longest.findIndex((path) => moduleId.includes(path));
    const first = longest.flatMap((_, index) => files.filter((file) => place(file) === index));
    return [...first, ...(await super.sort(files.filter((file) => place(file) < 0)))];
  }
}
