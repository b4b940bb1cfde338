import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPartnersFile } from "@booking-events/partners";
import { expect, onTestFinished, test } from "vitest";
import { spawnOps } from "../testing/run-ops.ts";

test("five processes that each add a partner add all five", async () => {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-partners-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "partners.json");
  const names = Array.from({ length: 5 }, (_, number) => `p${number}`);
  const runs = await Promise.all(names.map((id) => spawnOps(["partners", "add", id], { PARTNERS_FILE: path })));
  expect(runs.filter(({ exitCode }) => exitCode !== 0)).toEqual([]);
  expect(
    readPartnersFile(path)
      .partners.map(({ id }) => id)
      .toSorted(),
  ).toEqual(names);
  expect(await readdir(folder)).toEqual(["partners.json"]);
}, 60_000);
