import { globSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";

/** The table of ARCHITECTURE.md says which room may import which. */
const root = join(import.meta.dirname, "../..");
const shipped = readRooms();
const everything = [...shipped.keys(), "scripts", ...readdirSync(join(root, "tests")).map((name) => `tests/${name}`)];

function readRooms(): Map<string, string[]> {
  const rows = readFileSync(join(root, "ARCHITECTURE.md"), "utf8").matchAll(
    /^\| `((?:apps|packages)\/\w+)` +\|[^|]*\| ([^|]*?) *\|$/gm,
  );
  return new Map(
    [...rows].map(([, room = "", mayImport = ""]) => [
      room,
      mayImport.split(", ").filter((name) => name !== "nothing"),
    ]),
  );
}

interface Import {
  file: string;
  specifier: string;
  isTest: boolean;
}

function readImports(room: string): Import[] {
  const files = globSync("**/*.{ts,tsx,mts,mjs}", { cwd: join(root, room), exclude: isMade });
  return files.flatMap((file) => {
    const source = readFileSync(join(root, room, file), "utf8");
    const isTest = /\.test(-d)?\.tsx?$|(^|\/)testing\//.test(file);
    return [...source.matchAll(/(?:\bfrom|\bimport\(?) *"([^"]+)"/g)].map(([, specifier = ""]) => {
      return { file: join(room, file), specifier, isTest };
    });
  });
}

/** Dependencies link to other rooms, and those to their own. */
const isMade = (path: string) => ["node_modules", "dist"].includes(basename(path));
const isOfRooms = ({ specifier }: Import) => specifier.startsWith("@booking-events/");
const say = ({ file, specifier }: Import) => `${file} imports ${specifier}`;

/** The entry points of a package's build. Its files are for tests. */
function exportsOf(name: string): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  return Object.entries<object>(exports)
    .filter(([, target]) => Object.hasOwn(target, "default"))
    .map(([path]) => join("@booking-events", name, path));
}

test("the table has every app and every package", () => {
  const folders = globSync("{apps,packages}/*/package.json", { cwd: root }).map(dirname);
  expect([...shipped.keys()].toSorted()).toEqual(folders.toSorted());
});

describe.each([...shipped])("%s", (room, mayImport) => {
  const imports = readImports(room);

  test("imports only the rooms that it may, and only what they export", () => {
    expect(imports.length).toBeGreaterThan(0);
    const allowed = mayImport.flatMap(exportsOf);
    const wrong = imports.filter((one) => !one.isTest && isOfRooms(one) && !allowed.includes(one.specifier));
    expect(wrong.map(say)).toEqual([]);
  });

  test("has tests that import packages, the harness and scripts besides, and no app", () => {
    const apps = [...shipped.keys()].filter((name) => name.startsWith("apps/")).map((name) => basename(name));
    const isOfApp = ({ specifier }: Import) => apps.includes(specifier.split("/")[1] ?? "");
    const wrong = imports.filter((one) => one.isTest && isOfRooms(one) && isOfApp(one));
    expect(wrong.map(say)).toEqual([]);
  });
});

test.each(everything)("%s imports other rooms by name, never by path", (room) => {
  const wrong = readImports(room).filter(({ file, specifier }) => {
    if (!specifier.startsWith(".")) return false;
    const imported = join(dirname(file), specifier);
    return imported.includes("/") && relative(room, imported).startsWith("..");
  });
  expect(wrong.map(say)).toEqual([]);
});
