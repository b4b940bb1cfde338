import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generateFiles } from "./generate-files.ts";
import { createRules } from "./rules.ts";

const root = join(import.meta.dirname, "../..");

test.each(Object.entries(generateFiles()))("%s is up to date: otherwise, run npm run observability", (path, text) => {
  expect(readFileSync(join(root, path), "utf8")).toBe(text);
});

test("every alert leads to its section of the runbook", () => {
  const headings = readFileSync(join(root, "docs/runbook.md"), "utf8").match(/(?<=^## ).+$/gm);
  for (const rule of createRules().flatMap(({ rules }) => rules)) {
    if (!("alert" in rule)) continue;
    expect(headings).toContain(rule.alert);
    expect(rule.annotations.runbook_url).toBe(`docs/runbook.md#${rule.alert.toLowerCase()}`);
  }
});
