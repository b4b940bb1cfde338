import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { findFiles } from "./find-files.ts";
import { readMetricNames } from "./metric-names.ts";

const root = join(import.meta.dirname, "../..");
const pages = findFiles("**/*.md");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Folders that exist in a working copy and not in a clone, and a file that does not exist yet. */
const notKept = /(^|\/)(dist|node_modules|000N_)/;

/** Paths from the root. A test may be named as vitest takes it: by the beginning of its path. */
function findMissingFiles(text: string): string[] {
  const named = [...text.matchAll(/(?:^|[\s`=])((?:apps|packages|tests|scripts|deploy|docs)\/[\w./-]+)/gm)];
  return named
    .flatMap(([, path = ""]) => (notKept.test(path) ? [] : [path.replace(/[./]+$/, "")]))
    .filter((path) => !existsSync(join(root, path)) && globSync(`${path}.*`, { cwd: root }).length === 0);
}

function findMissingScripts(text: string): string[] {
  const called = [...text.matchAll(/\bnpm run (?:-s )?([\w:-]+)/g)].map(([, script = ""]) => script);
  return called.filter((script) => !Object.hasOwn(scripts, script));
}

test("a file or a script that does not exist would be found", () => {
  expect(findMissingFiles("`tests/none.test.ts`, `tests/e2e/whole-way`, `docs/runbook.md`")).toEqual([
    "tests/none.test.ts",
  ]);
  expect(findMissingScripts("`npm run none`, `npm run verify`")).toEqual(["none"]);
});

test.each(pages)("%s names files and scripts that exist", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  expect(findMissingFiles(text)).toEqual([]);
  expect(findMissingScripts(text)).toEqual([]);
});

test("docs/guarantees.md names tests that exist", () => {
  const text = readFileSync(join(root, "docs/guarantees.md"), "utf8");
  const promises = text.split("\n## ")[1] ?? "";
  const named = Array.from(promises.matchAll(/`([a-z][a-z.-]+)`/g), ([, name]) => name);
  const tests = findFiles("**/*.test.ts").map((path) => basename(path));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !tests.some((file) => file.startsWith(`${name}.`)))).toEqual([]);
});

test.each(["docs/operations/watch.md", "docs/runbook.md"])("%s names metrics that exist", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  const named = Array.from(text.matchAll(/`((?:ingest|lookup|booking_events)_\w+)/g), ([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(1);
  const names = readMetricNames();
  expect(named.filter((name) => !names.includes(name))).toEqual([]);
});
