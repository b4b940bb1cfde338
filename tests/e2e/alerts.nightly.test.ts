import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { describe, test } from "vitest";
import { parse } from "yaml";
import { rulesFolder } from "./alert-rules.ts";
import { runPromtool } from "./run-promtool.ts";

const folder = `${rulesFolder}/tests`;
const hasPrometheus = (await findOrInstallTool("prometheus", { say: console.log })) !== undefined;

describe.skipIf(!hasPrometheus).each(readdirSync(folder))("%s", (file) => {
  const { tests, rule_files, ...suite } = parse(readFileSync(join(folder, file), "utf8"));

  // One at a time, because promtool does not name the one that failed.
  test.each<[string, object]>(tests.map((one: { name: string }) => [one.name, one]))("%s", (_name, one) => {
    const ruleFiles = rule_files.map((path: string) => resolve(folder, path));
    runPromtool({ ...suite, rule_files: ruleFiles, tests: [one] });
  });
});
