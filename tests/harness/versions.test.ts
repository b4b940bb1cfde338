import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";

/** A release changes the version in all of these places. `npm run json-schema` writes it into what is generated. */
const places = {
  "{scripts,{apps,packages,tests}/*}/package.json": /^ {2}"version": "(.*)"/gm,
  "packages/schema/src/client/version.ts": /"(.*)"/g,
  "packages/schema/openapi.json": /^ {4}"version": "(.*)"/gm,
  "docs/clients/*.{cs,java,js,php,py}": /\bversion\b[^=\n]* = ["'](.*?)["']/gi,
  "apps/ingest/docs/*.html": /Booking events (\S+) ·|data-label="Version">(.*?)</g,
  Dockerfile: /image\.version="(.*?)"/g,
  "deploy/kubernetes/example/cluster/kustomization.yaml": /newTag: &release (.*)/g,
  "docs/operations/start.md": /\$image:(\S+) --push/g,
};

const root = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");
const isMade = (path: string) => ["node_modules", "dist"].includes(basename(path));

test.each(Object.entries(places))("%s has the version of package.json", (pattern, statement) => {
  const { version } = JSON.parse(read("package.json"));
  const files = globSync(pattern, { cwd: root, exclude: isMade });
  expect(files).not.toEqual([]);
  for (const file of files) {
    const stated = Array.from(read(file).matchAll(statement), ([, ...groups]) => groups.join(""));
    expect([file, ...new Set(stated)]).toEqual([file, version]);
  }
});
