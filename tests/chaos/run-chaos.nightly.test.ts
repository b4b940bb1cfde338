import { expect, test } from "vitest";
import { realBuild } from "./builds.ts";
import { planScenarios, scenarioMs, scenarios } from "./fault-plan.ts";
import { formatChaosReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";

/** Each run of the tests is the same one. `npm run chaos` takes a new seed each time. */
const seed = 20_261_120;

test("whatever is killed or frozen, no acknowledged event is lost and every booking is right", async ({ signal }) => {
  const report = await runChaos({
    faults: planScenarios(Object.values(scenarios)),
    // Up to the last of the faults.
    postMs: Object.values(scenarios).length * scenarioMs - 5_000,
    ratePerSecond: 60,
    seed,
    signal,
    build: realBuild,
    keepsEvidence: true,
    say: console.log,
  });
  console.log(formatChaosReport(report));
  expect(report.violations).toEqual([]);
  expect(new Set(report.faults.map(({ action }) => action))).toEqual(
    new Set(["end", "freeze", "expire certificate", ...(report.clockIsSet ? ["set clock", "wrong clock"] : [])]),
  );
  expect(report.tally.acknowledged).toBeGreaterThan(0);
  expect(report.testEvents).toBeGreaterThan(0);
  expect(report.erasures.guests).toBeGreaterThan(3);
  expect(report.restores.commands).toBeGreaterThan(0);
  expect(report.readers.stops).toBeGreaterThan(0);
  expect(report.deliveries).toMatchObject({
    takeovers: expect.toSatisfy((takeovers: number) => takeovers > 3),
    erased: expect.toSatisfy((erased: number) => erased > 3),
    forgotten: expect.toSatisfy((forgotten: number) => forgotten > 0),
  });
}, 600_000);
