import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sections } from "./find-concerns.ts";

test("the runbook has a section for each concern", () => {
  const runbook = readFileSync(join(import.meta.dirname, "../../../../docs/runbook.md"), "utf8");
  const headings = Array.from(runbook.matchAll(/^## (.+)$/gm), ([, heading]) => heading);
  expect(headings).toEqual(expect.arrayContaining([...sections]));
});
