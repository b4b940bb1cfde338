import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Together with `"types": []` in tsconfig.json, which leaves Buffer, process and the like undeclared. */
test("the package imports valibot and its own files, and nothing that only Node has", () => {
  const fileNames = readdirSync(import.meta.dirname).filter((name) => !/\.test(-d)?\.ts$/.test(name));
  const imported = fileNames.flatMap((name) => {
    const source = readFileSync(new URL(name, import.meta.url), "utf8");
    return Array.from(source.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)["'](?<specifier>[^"']+)["']/g), (match) => ({
      name,
      specifier: match.groups?.["specifier"] ?? "",
    }));
  });

  expect(imported.length).toBeGreaterThan(20);
  for (const { name, specifier } of imported) {
    const isOwn = specifier.startsWith("./") && fileNames.includes(specifier.slice(2));
    expect(isOwn || specifier === "valibot", `${name} imports ${specifier}`).toBe(true);
  }
});

test("valibot is the only dependency", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

  expect(Object.keys(manifest.dependencies)).toEqual(["valibot"]);
});
