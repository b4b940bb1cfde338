import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** npm and pnpm download packages. */
export const downloadTimeoutMs = 300_000;

/** Makes an empty project, and installs packages into it by npm: tarballs, or versions such as `pg@8.23.1`. */
export async function createProject(folder: string, packages: string[]): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await run("npm", ["install", "--no-audit", "--no-fund", ...packages], { cwd: folder });
}

/** Compiles a program with the strictest options, also the declarations of its packages. @throws with what tsc says */
export async function compileStrictly(
  project: string,
  file: string,
  { types, lib, more = [] }: { types: string; lib: string; more?: string[] },
): Promise<void> {
  const options = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false", "--noEmit"];
  const target = ["--module", "nodenext", "--target", "es2024", "--lib", lib, "--types", types];
  await run(join(root, "node_modules/.bin/tsc"), [...options, ...target, file, ...more], { cwd: project }).catch(
    (error: { stdout: string }) => {
      throw new Error(error.stdout);
    },
  );
}
