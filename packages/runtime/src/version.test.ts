import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { version } from "./version.ts";

const root = join(import.meta.dirname, "../../..");
const manifests = globSync("{package.json,scripts/package.json,{apps,packages,tests}/*/package.json}", {
  cwd: root,
  exclude: (path) => basename(path) === "node_modules",
});

test.each(manifests)("%s has the version that the programs report", (manifest) => {
  expect(JSON.parse(readFileSync(join(root, manifest), "utf8")).version).toBe(version);
});
