import { findCaddy } from "@booking-events/harness/start-caddy";
import { expect, test } from "vitest";
import { runBadNeighbour } from "./bad-neighbour.ts";
import { type Build, realBuild, waitForLocks } from "./builds.ts";
import type { NeighbourReport } from "./neighbour-report.ts";

const proxyProgram = await findCaddy(console.log);

/** Short, with little load, and without the timed promises of `npm run chaos -- --scenario bad-neighbour`. */
const run = (build: Build, signal: AbortSignal) =>
  runBadNeighbour({
    build,
    signal,
    proxyProgram,
    quietMs: 1_000,
    loudMs: 9_000,
    neighbourPerSecond: 20,
    strangers: 4,
    keepsEvidence: false,
    say: console.log,
  });

const broken = (report: NeighbourReport) =>
  report.promises.filter(({ isTimed, isKept }) => !isTimed && !isKept).map(({ name, found }) => `${name}: ${found}`);

test("bad neighbours harm nobody else", { timeout: 300_000 }, async ({ signal }) => {
  const report = await run(realBuild, signal);
  expect(report.violations).toEqual([]);
  expect(broken(report)).toEqual([]);
  for (const traffic of ["worst", "hot", "locked"]) expect(report.statuses[traffic]?.["200"]).toBeGreaterThan(0);
  expect(report.statuses["revoked secret"]?.["403"]).toBeGreaterThan(0);
  expect(report.statuses["unknown path"]?.["404"]).toBeGreaterThan(0);
  if (report.isBehindProxy) expect(report.statuses["HTTP/2"]?.["refused"]).toBeGreaterThan(0);
  expect(report.statuses["lists"]?.["200"]).toBeGreaterThan(0);
  expect(report.statuses["strangers"]).toMatchObject({ 403: expect.any(Number), 404: expect.any(Number) });
});

test("a run fails with a worker that waits for a locked booking", { timeout: 300_000 }, async ({ signal }) => {
  const report = await run(waitForLocks, signal);
  expect(report.passed).toBe(false);
  expect(broken(report)).toEqual([expect.stringContaining("a locked booking makes no other partner wait")]);
  // The mistake was found, and not a run that did not start.
  expect(report.violations).toEqual([]);
});
