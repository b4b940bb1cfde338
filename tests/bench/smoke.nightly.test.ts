import { platform } from "node:os";
import { expect, test } from "vitest";
import { runBench } from "./run-bench.ts";
import { scenarios } from "./scenarios/index.ts";

// It asserts no speed: on a shared machine that would be a matter of luck.
test.each(scenarios)("$name runs, and keeps its integrity", async (scenario) => {
  const report = await runBench({
    scenarios: [scenario],
    rounds: 1,
    measureMs: 1_000,
    warmUpMs: 1_000,
    isSmoke: true,
    profileDir: undefined,
    otherClone: process.cwd(),
    say: () => {},
    signal: new AbortController().signal,
  });
  // Other systems provide no CPU time and no memory.
  if (platform() !== "linux") return;
  expect(report.sections.length).toBeGreaterThan(0);
  for (const { measurements, ratios } of report.sections) {
    for (const figure of Object.values(measurements).flatMap(([round]) => Object.values(round ?? {}))) {
      // What an idle process has used in a second may be less than the operating system counts.
      expect(figure).toBeGreaterThanOrEqual(0);
    }
    for (const { median } of ratios) expect(median).toBeGreaterThan(0);
  }
});
