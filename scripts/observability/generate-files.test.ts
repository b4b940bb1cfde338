import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generateFiles } from "./generate-files.ts";

test.each(Object.entries(generateFiles()))("%s is up to date: otherwise, run npm run observability", (path, text) => {
  expect(readFileSync(join(import.meta.dirname, "../..", path), "utf8")).toBe(text);
});
