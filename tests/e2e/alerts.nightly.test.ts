import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { findPrometheus } from "@booking-events/scripts/services";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { rulesFolder } from "./alert-rules.ts";

const folder = `${rulesFolder}/tests`;

// `npm run test:nightly` installs it where it can.
describe.skipIf(findPrometheus() === undefined).each(readdirSync(folder))("%s", (file) => {
  const { tests, rule_files, ...suite } = parse(readFileSync(join(folder, file), "utf8"));

  // One at a time, because promtool does not name the one that failed.
  test.each<[string, object]>(tests.map((one: { name: string }) => [one.name, one]))("%s", (_name, one) => {
    const ruleFiles = rule_files.map((path: string) => resolve(folder, path));
    runPromtool({ ...suite, rule_files: ruleFiles, tests: [one] });
  });
});

function runPromtool(suite: object): void {
  const temporary = mkdtempSync(join(tmpdir(), "booking-events-alerts-"));
  try {
    const path = join(temporary, "suite.yml");
    writeFileSync(path, stringify(suite, { lineWidth: 0 }));
    const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", path], { encoding: "utf8" });
    expect(status, `${stdout}${stderr}`).toBe(0);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}
