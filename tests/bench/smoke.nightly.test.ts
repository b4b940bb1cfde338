import { platform } from "node:os";
import { expect, test } from "vitest";
import { runBench } from "./run-bench.ts";
import { scenarios } from "./scenarios/index.ts";

// No speed is asserted: a shared machine would make it a matter of luck.
test.each(scenarios)(
  "$name runs, and what it measures does its work",
  async (scenario) => {
    const report = await runBench({
      scenarios: [scenario],
      ...{ rounds: 1, measureMs: 1_000, warmUpMs: 1_000, isSmoke: true, profileDir: undefined, say: () => {} },
      signal: new AbortController().signal,
    });
    // Other systems tell no CPU time, and no memory.
    if (platform() !== "linux") return;
    expect(report.sections.length).toBeGreaterThan(0);
    for (const { measurements, comparisons } of report.sections) {
      for (const { of, to, figure } of comparisons) {
        expect(measurements[of]?.[0]?.[figure]).toBeGreaterThan(0);
        expect(measurements[to]?.[0]?.[figure]).toBeGreaterThan(0);
      }
    }
  },
  120_000,
);
