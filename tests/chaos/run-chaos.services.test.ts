import { expect, test } from "vitest";
import { realBuild } from "./builds.ts";
import { type Fault, inOrder, planScenarios, scenarioMs, scenarios } from "./fault-plan.ts";
import { formatChaosReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";

/** Each run of the tests is the same one. `npm run chaos` takes a new seed each time. */
const seed = 20_261_120;
/**
 * By day, those in which several servers and processes fail together, one begun before the other is over. Smaller tests
 * hit by day what the others hit: `crash-points` kills workers at each step, `convergence` has every order of events,
 * `compare-clocks` has clocks that differ, and `watch-freezes` freezes an ingest.
 */
const byDay = {
  faults: inOrder([
    ...scenarios["redis frozen and its clock set back meanwhile, an ingest frozen for longer; an expired certificate"],
    ...scenarios["postgres frozen, redis and all workers killed"].map(laterBy(5_500)),
    // Deliveries to subscribers need no worker and no Redis.
    ...scenarios["a webhooks told to stop, the other frozen for longer than its lease, then the first killed"],
  ]),
  postMs: 10_000,
  ratePerSecond: 40,
  clockFaults: ["set clock"],
};
const byNight = {
  faults: planScenarios(Object.values(scenarios)),
  // Up to the last of the faults.
  postMs: Object.values(scenarios).length * scenarioMs - 5_000,
  ratePerSecond: 60,
  clockFaults: ["set clock", "wrong clock"],
};
const { clockFaults, ...chosen } = process.env["CHAOS_SCENARIOS"] === "all" ? byNight : byDay;

function laterBy(ms: number): (fault: Fault) => Fault {
  return (fault) => ({ ...fault, atMs: fault.atMs + ms });
}

test("whatever is killed or frozen, no acknowledged event is lost and every booking is right", async ({ signal }) => {
  const report = await runChaos({
    ...chosen,
    seed,
    signal,
    build: realBuild,
    keepsEvidence: true,
    say: console.log,
  });
  console.log(formatChaosReport(report));
  expect(report.violations).toEqual([]);
  expect(new Set(report.faults.map(({ action }) => action))).toEqual(
    new Set(["end", "freeze", "expire certificate", ...(report.clockIsSet ? clockFaults : [])]),
  );
  expect(report.tally.acknowledged).toBeGreaterThan(0);
  expect(report.erasures.guests).toBeGreaterThan(3);
  expect(report.restores.commands).toBeGreaterThan(0);
  expect(report.readers.stops).toBeGreaterThan(0);
  expect(report.deliveries).toMatchObject({
    takeovers: expect.toSatisfy((takeovers: number) => takeovers > 3),
    erased: expect.toSatisfy((erased: number) => erased > 3),
    forgotten: expect.toSatisfy((forgotten: number) => forgotten > 0),
  });
}, 600_000);
