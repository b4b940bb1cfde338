import { describe, expect, test } from "vitest";
import { realBuild } from "./builds.ts";
import { formatChaosReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";

/** Each app and each server stops with this process. */
process.setMaxListeners(0);

const run = {
  ...{ seed: 1, build: realBuild, faults: [], ratePerSecond: 40, replicasToConfirm: 1, keepsEvidence: true },
  // After the failover.
  machineFaultMs: { least: 500, most: 500 },
  say: () => {},
};

// The machines of the harness need more loopback addresses than macOS has. Both tests mostly wait.
describe.runIf(process.platform === "linux").concurrent("whichever machine dies, nothing is lost", () => {
  test("of a primary in a cluster", { timeout: 300_000 }, async ({ signal }) => {
    const machineFaults = ["a primary's machine dies"];
    const report = await runChaos({ ...run, redis: "cluster", postMs: 6_000, machineFaults, signal });
    console.log(formatChaosReport(report));
    expect(report.violations).toEqual([]);
    expect(report.machineFaults.map(({ name }) => name)).toEqual(machineFaults);
    expect(report.tally.acknowledged).toBeGreaterThan(0);
  });

  test("of a primary behind Sentinels, then of PostgreSQL", { timeout: 300_000 }, async ({ signal }) => {
    const machineFaults = ["a primary's machine dies", "PostgreSQL's machine dies, and its standby is promoted"];
    const servers = { redis: "sentinel", sentinelsAskEveryMs: 500, postgres: "standby" } as const;
    const report = await runChaos({ ...run, ...servers, postMs: 9_000, machineFaults, signal });
    console.log(formatChaosReport(report));
    expect(report.violations).toEqual([]);
    expect(report.machineFaults.map(({ name }) => name)).toEqual(machineFaults);
    expect(report.tally.acknowledged).toBeGreaterThan(0);
  });
});
