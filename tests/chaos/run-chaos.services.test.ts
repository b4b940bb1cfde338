import { expect, test } from "vitest";
import { realBuild } from "./builds.ts";
import { planFaults, scenarioMs, scenarios } from "./fault-plan.ts";
import { createRandom } from "./random.ts";
import { formatChaosReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";

/** Each run of the tests is the same one. `npm run chaos` takes a new seed each time. */
const seed = 20_261_120;
/** Up to the last of the known scenarios. */
const postMs = Object.keys(scenarios).length * scenarioMs - 5_000;

test("whatever is killed or frozen, no acknowledged event is lost and every booking is right", async ({ signal }) => {
  const report = await runChaos({
    seed,
    postMs,
    signal,
    build: realBuild,
    ratePerSecond: 60,
    keepsEvidence: true,
    say: console.log,
    faults: planFaults(createRandom(seed, "faults"), postMs),
  });
  console.log(formatChaosReport(report));
  expect(report.violations).toEqual([]);
  expect(new Set(report.faults.map(({ action }) => action))).toEqual(
    new Set(["end", "freeze", "expire certificate", ...(report.clockIsSet ? ["set clock", "wrong clock"] : [])]),
  );
  expect(report.tally.acknowledged).toBeGreaterThan(0);
}, 600_000);
