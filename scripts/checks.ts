import { spawn } from "node:child_process";
import { once } from "node:events";
import { buildCommand } from "./build.ts";
import { binary, root } from "./clone.ts";

interface Check {
  name: string;
  /** One of node_modules/.bin. */
  program: string;
  args: readonly string[];
  environment?: NodeJS.ProcessEnv;
}

// In CI, Biome colours each character by itself, even in a file.
const biomeArgs = ["ci", ".", ...(process.stdout.isTTY ? [] : ["--colors=off"])];
const staticChecks: readonly Check[] = [
  { name: "Format and lint (`npm run format` fixes most of it)", program: "biome", args: biomeArgs },
  { name: "Types", program: "tsc", args: ["--noEmit", "-p", "tsconfig.json"] },
  { name: "Unused code and dependencies", program: "knip", args: [] },
  { name: "Build", ...buildCommand },
];

/**
 * Runs every check and then the tests, up to the first that fails.
 *
 * @returns the exit code: 0 if all is well, else that of the check that failed
 */
export async function runChecks(vitestArgs: readonly string[], stop: AbortSignal): Promise<number> {
  const reporters = ["--reporter=default", "--reporter=./scripts/summary-reporter.ts"];
  const tests = { name: "Tests", program: "vitest", args: ["run", ...reporters, ...vitestArgs] };
  for (const check of [...staticChecks, tests]) {
    console.log(`\n── ${check.name}`);
    const exitCode = await runCheck(check, stop);
    if (stop.aborted) return 130;
    if (exitCode === 0) continue;
    console.error(`\n✗ ${check.name}: failed.`);
    return exitCode;
  }
  return 0;
}

async function runCheck({ program, args, environment }: Check, stop: AbortSignal): Promise<number> {
  const env = { ...process.env, ...environment };
  const child = spawn(binary(program), args, { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
  stop.addEventListener("abort", () => child.kill("SIGINT"));
  const [code] = await once(child, "close");
  return code ?? 1;
}
