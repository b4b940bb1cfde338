import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";

/** `"types": []` in tsconfig.json does the rest: it leaves Buffer, process and other globals of Node undeclared. */
test("the package imports only its dependencies and its own files, not Node's modules", () => {
  const entries = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" });
  const fileNames = entries.filter((name) => /(?<!\.test(-d)?)\.ts$/.test(name));
  const imported = fileNames.flatMap((name) => {
    const source = readFileSync(new URL(name, import.meta.url), "utf8");
    return Array.from(source.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)["'](?<specifier>[^"']+)["']/g), (match) => ({
      name,
      specifier: match.groups?.["specifier"] ?? "",
    }));
  });

  expect(imported.length).toBeGreaterThan(20);
  for (const { name, specifier } of imported) {
    const isOwn = specifier.startsWith(".") && fileNames.includes(join(dirname(name), specifier));
    const isForTests = name.startsWith("testing/") && specifier === "fast-check";
    const isForPhones = name.startsWith("normalise/") && specifier.startsWith("libphonenumber-js/");
    expect(isOwn || specifier === "valibot" || isForPhones || isForTests, `${name} imports ${specifier}`).toBe(true);
  }
});

test("the package has two dependencies, which have none", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

  expect(Object.keys(manifest.dependencies)).toEqual(["libphonenumber-js", "valibot"]);
  for (const name of Object.keys(manifest.dependencies)) {
    const dependency = JSON.parse(
      readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), "utf8"),
    );
    expect(dependency.dependencies ?? {}).toEqual({});
  }
});

test("importing the package loads no language's data, which would take longer than the rest", async () => {
  const format = vi.spyOn(Number.prototype, "toLocaleString");
  vi.resetModules();
  await import("./index.ts");
  expect(format).not.toHaveBeenCalled();
});
