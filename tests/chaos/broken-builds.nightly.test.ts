import { describe, expect, test } from "vitest";
import { brokenBuilds } from "./builds.ts";
import { runChaos } from "./run-chaos.ts";

// The run that must pass, in `run-chaos.nightly.test.ts`, has the same faults in it.
describe("a run fails with a broken build", () => {
  test.for(brokenBuilds)("$name: $mustFind", { timeout: 300_000 }, async (build, { signal }) => {
    const report = await runChaos({
      seed: 1,
      build,
      faults: build.faults,
      postMs: build.postMs,
      ratePerSecond: 60,
      keepsEvidence: false,
      say: () => {},
      signal,
    });
    expect(report.passed).toBe(false);
    expect(report.violationCounts[build.mustFind], JSON.stringify(report.violationCounts)).toBeGreaterThan(0);
    // The mistake was found, and not a run that did not start. A queue that has lost everything may be taken by the worker
    // of another database, and then the others refuse it.
    const { crashed, stuck, dead, stranger } = report.violationCounts;
    expect({ crashed: stranger > 0 ? 0 : crashed, stuck, dead }).toEqual({ crashed: 0, stuck: 0, dead: 0 });
  });
});
