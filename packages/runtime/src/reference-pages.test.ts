import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { redisVariables, tracingSwitches, tracingVariables, variables } from "./environment.ts";

const root = join(import.meta.dirname, "../../..");
const readPage = (name: string) => readFileSync(join(root, "docs/operations", name), "utf8");

/** Returns the source code of an app or a package without its tests. */
function readSource(folder: string): string {
  const files = globSync("**/*.ts", { cwd: join(root, folder, "src") });
  const shipped = files.filter((file) => !file.endsWith(".test.ts"));
  return shipped.map((file) => readFileSync(join(root, folder, "src", file), "utf8")).join("\n");
}

const ingest = readSource("apps/ingest");
const worker = readSource("apps/worker");
const lookup = readSource("apps/lookup");
const webhooks = readSource("apps/webhooks");
const console = readSource("apps/console");

describe("the table of environment variables", () => {
  const lines = readPage("variables.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const cells = lines.map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")));
  // A line may have several variables.
  const rows = cells.flatMap(([, names = "", ...others]) => names.split(", ").map((name) => ["", name, ...others]));
  const isReadBy = (processes: string | undefined, app: string) =>
    // All that use Redis.
    (processes === "all" && app !== "webhooks") || processes?.split(", ").includes(app);
  const ofOneProcess = new Map(Object.entries<v.GenericSchema>(variables));

  test("names every variable once", () => {
    const names = rows.map(([, name]) => name);
    expect(names.toSorted()).toEqual([...ofOneProcess.keys(), "ADMIN_PORT"].toSorted());
  });

  test.each(Object.entries({ ingest, worker, lookup, webhooks, console }))(
    "names the variables that %s reads",
    (app, source) => {
      const settings = [...source.matchAll(/^ {2}([A-Z_]+): (?:variables\.|(?:admin|service)Port\()/gm)].map(
        ([, name]) => name,
      );
      if (source.includes("  ...redisVariables,\n")) settings.push(...Object.keys(redisVariables));
      // Whoever reads a URL reads its password.
      const read = settings.flatMap((name) => [name, name?.replace(/^(REDIS|DATABASE)_URL$/, "$1_PASSWORD")]);
      const named = rows.filter(([, , processes]) => isReadBy(processes, app)).map(([, name]) => name);
      expect(named.toSorted()).toEqual([...new Set(read)].toSorted());
    },
  );

  test("names what ops reads", () => {
    const source = readSource("apps/ops") + readSource("packages/operations");
    const read = Array.from(source.matchAll(/\bvariables\.([A-Z_]+)/g), ([, name]) => name);
    const named = rows.filter(([, , processes]) => isReadBy(processes, "ops")).map(([, name]) => name);
    expect(read.length).toBeGreaterThan(4);
    expect(named).toEqual(expect.arrayContaining(read));
  });

  test("has the defaults of the code", () => {
    for (const [, name = "", , documented] of rows.filter(([, name]) => name !== "ADMIN_PORT")) {
      const { success, output } = v.safeParse(v.object({ [name]: ofOneProcess.get(name) ?? v.never() }), {});
      expect([name, success ? String(output[name] ?? "none") : "required"]).toEqual([name, documented]);
    }
    const ports = `${ingest}${worker}${lookup}${webhooks}${console}`.matchAll(/adminPort\((\d+)\)/g);
    expect(rows.find(([, name]) => name === "ADMIN_PORT")?.[3]).toBe(Array.from(ports, ([, port]) => port).join(", "));
  });

  test("has the ranges of the code", () => {
    const ranges = rows.flatMap(([, name = "", , , meaning = ""]) => {
      const range = /\b([\d.]+) to (\d+)\b/.exec(meaning);
      return range === null ? [] : [{ name, least: range[1] ?? "", most: range[2] ?? "" }];
    });
    expect(ranges.length).toBeGreaterThan(8);
    for (const { name, least, most } of ranges) {
      const takes = (value: string) => v.is(ofOneProcess.get(name) ?? v.never(), value);
      const values = [least, most, String(Number(least) - 0.01), String(Number(least) - 1), String(Number(most) + 1)];
      expect([name, ...values.map(takes)]).toEqual([name, true, true, false, false, false]);
    }
  });
});

test.each(Object.keys({ ...tracingSwitches, ...tracingVariables }))("the page on traces names %s", (name) => {
  expect(readPage("watch.md").split("\n## Traces\n")[1]).toMatch(new RegExp(`\\b${name}\\b`));
});
