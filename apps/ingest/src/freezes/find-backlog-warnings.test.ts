import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findBacklogWarnings } from "./find-backlog-warnings.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-backlog-"));
const file = join(folder, "somaxconn");

afterAll(() => rmSync(folder, { recursive: true }));

test("a system that lets fewer connections wait than ingest asks for is reported, with the setting", () => {
  writeFileSync(file, "128\n");
  expect(findBacklogWarnings(file)).toEqual([
    expect.stringMatching(/^Linux lets only 128 connections wait .*Set: sysctl net\.core\.somaxconn=4096\./),
  ]);
  writeFileSync(file, "4096\n");
  expect(findBacklogWarnings(file)).toEqual([]);
});

test("a system that does not tell is not reported", () => {
  expect(findBacklogWarnings(join(folder, "missing"))).toEqual([]);
});
