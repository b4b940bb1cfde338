import { describe, expect, test } from "vitest";
import { realBuild } from "./builds.ts";
import { type Fault, planFaults } from "./fault-plan.ts";
import { createRandom } from "./random.ts";
import { formatChaosReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";

/** The machines of the harness need more loopback addresses than macOS has. */
const onLinux = describe.runIf(process.platform === "linux");
const seed = 20_261_122;
/** A run waits until everything has been delivered. */
const slowMachineMs = 900_000;
const base = { seed, build: realBuild, ratePerSecond: 60, say: console.log };

onLinux("a minute of faults of servers with replicas loses nothing", () => {
  const postMs = 60_000;
  const faults = planFaults(createRandom(seed, "faults"), postMs);

  test.for([{ redis: "cluster" }, { redis: "sentinel" }, { postgres: "standby" }] as const)(
    "%j",
    { timeout: slowMachineMs },
    async (servers, { signal }) => {
      const report = await runChaos({
        ...base,
        ...servers,
        faults,
        postMs,
        replicasToConfirm: 1,
        keepsEvidence: true,
        signal,
      });
      console.log(formatChaosReport(report));
      expect(report.violations).toEqual([]);
      expect(report.machineFaults.length).toBeGreaterThan(0);
    },
  );
});

/**
 * Nobody takes events, so that those which were accepted last are only in Redis when a primary's machine dies. Slow
 * links make sure that there are some.
 */
onLinux("a machine dies with what its replicas do not have yet", () => {
  const freeze = (target: Fault["target"]): Fault => ({ atMs: 0, target, action: "freeze", forMs: 12_000 });
  const demanding = {
    ...base,
    ratePerSecond: 100,
    postMs: 10_000,
    faults: [freeze("worker-1"), freeze("worker-2"), freeze("worker-3")],
    machineFaults: ["a primary's machine dies"],
    machineFaultMs: { least: 500, most: 500 },
  };

  test.for(["cluster", "sentinel"] as const)(
    "%s: lost, unless a replica had to confirm",
    { timeout: slowMachineMs },
    async (redis, { signal }) => {
      const slowLinks = { least: 300, most: 350 };
      const careless = await runChaos({
        ...demanding,
        redis,
        delayMs: slowLinks,
        replicasToConfirm: 0,
        keepsEvidence: false,
        signal,
      });
      console.log(formatChaosReport(careless));
      expect(careless.violationCounts.lost).toBeGreaterThan(0);
      // The loss was found, and not a run that did not start.
      expect(careless.violationCounts).toMatchObject({ crashed: 0, stuck: 0, dead: 0 });

      const careful = await runChaos({ ...demanding, redis, replicasToConfirm: 1, keepsEvidence: true, signal });
      expect(careful.violations).toEqual([]);
    },
  );
});
