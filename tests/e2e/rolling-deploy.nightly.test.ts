import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitFor } from "@booking-events/harness";
import { type AppProcess, builtApps, startApp } from "@booking-events/harness/app-process";
import { findPreviousRelease } from "@booking-events/harness/previous-release";
import { afterEach, expect, test } from "vitest";
import { printedByOps } from "./run-ops.ts";
import { type SteadyLoad, startLoad, writeLoadPartners } from "./steady-load.ts";
import { useOwnServices } from "./surroundings.ts";

const eventsOfEachPair = 200;

const own = useOwnServices("a-secret-of-the-deployment-tests-0123456");
const apps: AppProcess[] = [];
let load: SteadyLoad | undefined;

afterEach(async () => {
  await load?.close();
  await Promise.all(apps.splice(0).map((app) => app.stop("SIGKILL")));
});

const run = promisify(execFile);

/** @returns the folder of the built release */
async function build(tag: string): Promise<string> {
  const folder = join(own.folder, "previous-release");
  mkdirSync(folder);
  await run("sh", ["-c", 'git archive "$1" | tar -x -C "$2"', "sh", tag, folder]);
  await run("npm", ["run", "build"], { cwd: folder });
  return folder;
}

async function start(name: "ingest" | "worker", folder: string): Promise<AppProcess> {
  const program = builtApps[name].map((path) => join(folder, path));
  const app = await startApp(program, own.environment, { name });
  apps.push(app);
  await app.untilReady();
  return app;
}

async function countApplied(): Promise<number> {
  const { rows } = await own.pool.query<{ count: number }>("select count(*)::int from booking_events");
  return rows[0]?.count ?? 0;
}

const countLoggedEvents = (worker: AppProcess) => worker.output().split('"msg":"event applied"').length;

test("each release's ingest works with the other's worker, before and after the migration", async ({ skip }) => {
  const release = await findPreviousRelease({ needsGit: true });
  if (release === undefined) return skip("no release has been tagged yet");
  const previous = await build(release);
  const newest = process.cwd();
  own.environment["PARTNERS_FILE"] = join(own.folder, "load-partners.json");
  const secretOf = writeLoadPartners(own.environment["PARTNERS_FILE"]);
  const ingestUrls: string[] = [];
  const untilApplied = async () => {
    const target = (await countApplied()) + eventsOfEachPair;
    await waitFor(async () => (await countApplied()) >= target, { timeoutMs: 60_000 });
  };
  /** Partners use the new one from now on. */
  const replaceIngest = async (old: AppProcess | undefined, folder: string) => {
    const ingest = await start("ingest", folder);
    ingestUrls.splice(0, 1, ingest.url);
    expect((await old?.stop()) ?? 0).toBe(0);
    return ingest;
  };

  const oldWorker = await start("worker", previous);
  const oldIngest = await replaceIngest(undefined, previous);
  load = startLoad({ ingestUrls, secretOf, environment: own.environment, perSecond: 100 });
  await untilApplied();

  expect(await printedByOps(["migrate"], own.environment)).toContain("The schema is up to date.");
  await untilApplied();

  const newIngest = await replaceIngest(oldIngest, newest);
  await untilApplied();

  const newWorker = await start("worker", newest);
  const workers = [oldWorker, newWorker];
  const before = workers.map(countLoggedEvents);
  await waitFor(() => workers.every((worker, index) => countLoggedEvents(worker) > (before[index] ?? 0)));

  expect(await oldWorker.stop()).toBe(0);
  await replaceIngest(newIngest, previous);
  await untilApplied();

  await load.stop();
  const { tally, violations } = await load.judge();
  expect(violations).toEqual([]);
  expect(tally).toMatchObject({ attempted: load.posts.length, acknowledged: load.posts.length });
  expect(await printedByOps(["bookings", "verify"], own.environment)).toContain(" 0 bookings differ");
  expect(await newWorker.stop()).toBe(0);
}, 600_000);
