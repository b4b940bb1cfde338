import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** npm and pnpm download packages. */
export const downloadTimeoutMs = 300_000;

/** @returns the path of the tarball that a registry would get */
export async function pack(packageFolder: string, destination: string): Promise<string> {
  const before = new Set(await readdir(destination));
  await run("pnpm", ["pack", "--pack-destination", destination], { cwd: packageFolder });
  const added = (await readdir(destination)).filter((name) => name.endsWith(".tgz") && !before.has(name));
  if (added[0] === undefined) throw new Error(`pnpm packed nothing in ${packageFolder}.`);
  return join(destination, added[0]);
}

/** Makes an empty project, and installs packages into it by npm: tarballs, or versions such as `pg@8.23.1`. */
export async function createProject(folder: string, packages: string[]): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await run("npm", ["install", "--no-audit", "--no-fund", ...packages], { cwd: folder });
}

/** Installs a version of Node beside the project. @returns the program */
export async function installNode(folder: string, version: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`;
  await createProject(folder, [`${name}@${version}`]);
  return join(folder, "node_modules", name, "bin/node");
}

/** Compiles a project with the strictest options, also the declarations of the packages. @throws with what tsc says */
export async function compileStrictly(
  project: string,
  { types, lib, more = [] }: { types: string; lib: string; more?: string[] },
): Promise<void> {
  const options = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false", "--noEmit"];
  const target = ["--module", "nodenext", "--target", "es2024", "--lib", lib, "--types", types];
  await run(join(root, "node_modules/.bin/tsc"), [...options, ...target, "main.ts", ...more], { cwd: project }).catch(
    (error: { stdout: string }) => {
      throw new Error(error.stdout);
    },
  );
}
