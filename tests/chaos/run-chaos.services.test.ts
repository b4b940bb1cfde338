import { expect, test } from "vitest";
import { realBuild } from "./builds.ts";
import { inOrder, planScenarios, scenarioMs, scenarios } from "./fault-plan.ts";
import { formatChaosReport } from "./report.ts";
import { runChaos } from "./run-chaos.ts";

/** Each run of the tests is the same one. `npm run chaos` takes a new seed each time. */
const seed = 20_261_120;
/**
 * By day, those in which several servers and processes fail together. Smaller tests hit by day what the others hit:
 * `crash-points` kills workers at each step, `convergence` has every order of events, `wrong-clocks` sets the clocks of
 * all, and `watch-freezes` freezes an ingest.
 */
const byDay = [
  scenarios["redis frozen and its clock set back meanwhile, an ingest frozen for longer; an expired certificate"],
  scenarios["postgres frozen, redis and all workers killed"],
];
/** Meanwhile. Deliveries to subscribers need no worker and no Redis. */
const webhooks =
  scenarios["a webhooks told to stop, the other frozen for longer than its lease, then the first killed"];
const isByNight = process.env["CHAOS_SCENARIOS"] === "all";
const chosen = isByNight ? Object.values(scenarios) : byDay;
const clockFaults = isByNight ? ["set clock", "wrong clock"] : ["set clock"];
/** Up to the last of its faults. */
const postMs = chosen.length * scenarioMs - (isByNight ? 5_000 : 2_000);

test("whatever is killed or frozen, no acknowledged event is lost and every booking is right", async ({ signal }) => {
  const report = await runChaos({
    seed,
    postMs,
    signal,
    build: realBuild,
    ratePerSecond: 60,
    keepsEvidence: true,
    say: console.log,
    faults: isByNight ? planScenarios(chosen) : inOrder([...planScenarios(chosen), ...webhooks]),
  });
  console.log(formatChaosReport(report));
  expect(report.violations).toEqual([]);
  expect(new Set(report.faults.map(({ action }) => action))).toEqual(
    new Set(["end", "freeze", "expire certificate", ...(report.clockIsSet ? clockFaults : [])]),
  );
  expect(report.tally.acknowledged).toBeGreaterThan(0);
  expect(report.erasures.guests).toBeGreaterThan(3);
  expect(report.readers.stops).toBeGreaterThan(0);
  expect(report.deliveries).toMatchObject({
    takeovers: expect.toSatisfy((takeovers: number) => takeovers > 3),
    erased: expect.toSatisfy((erased: number) => erased > 3),
    forgotten: expect.toSatisfy((forgotten: number) => forgotten > 0),
  });
}, 600_000);
