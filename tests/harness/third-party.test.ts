import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Those that ask for no more than to be passed on with the code, as the packages' own files are. */
const allowed = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "ISC", "MIT"];

interface Package {
  name: string;
  versions: string[];
}

/** What the images and the published packages have of others, by licence. Optional packages are for development. */
function listPackages(): [license: string, packages: Package[]][] {
  const shipped = ["--filter", "./apps/*", "--filter", "./packages/*"];
  const list = ["licenses", "list", "--prod", "--no-optional", "--json"];
  const printed = execFileSync(join(root, "node_modules/.bin/pnpm"), [...shipped, ...list], { cwd: root });
  return Object.entries(JSON.parse(printed.toString()));
}

test("THIRD-PARTY lists what is shipped of others; otherwise run `npm test -- third-party --update`", async () => {
  const lines = listPackages().flatMap(([license, packages]) =>
    packages.flatMap(({ name, versions }) => versions.map((version) => `${name} ${version}: ${license}\n`)),
  );
  lines.push("Unicode CLDR, in the tables of @booking-events/schema: Unicode-3.0\n");
  await expect(lines.sort().join("")).toMatchFileSnapshot(join(root, "THIRD-PARTY"));
});

test("every licence is one that we have agreed to", () => {
  const others = listPackages().filter(([license]) => !license.split(/ OR |[()]/).some((one) => allowed.includes(one)));
  expect(others).toEqual([]);
});
