import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkFiles } from "./check-files.ts";

test("a folder that cannot be opened, as in a container of another user, is no fault", () => {
  const folder = mkdtempSync(join(tmpdir(), "booking-events-"));
  const before = process.cwd();
  onTestFinished(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  });
  // It leads nowhere for root, too, whom no rights stop.
  symlinkSync(".data", join(folder, ".data"));
  process.chdir(folder);
  const checks = checkFiles("partners.json", new Date());
  expect(checks.map(({ name }) => name)).toEqual(["The partners file is valid"]);
});
