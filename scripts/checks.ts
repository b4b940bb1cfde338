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
  /** What to do when it fails. */
  advice: string;
}

const staticChecks: readonly Check[] = [
  {
    name: "Format and lint",
    program: "biome",
    // Told that it runs in CI, Biome colours each character by itself, in a file, too.
    args: ["ci", ".", ...(process.stdout.isTTY ? [] : ["--colors=off"])],
    advice: "`npm run format` fixes what needs no thought.",
  },
  {
    name: "Types",
    program: "tsc",
    args: ["--noEmit", "-p", "tsconfig.json"],
    advice: "Fix the types that it names.",
  },
  {
    name: "Unused code and dependencies",
    program: "knip",
    args: [],
    advice: "Remove what it names, or tell knip's configuration where it is used.",
  },
  { name: "Build", ...buildCommand, advice: "Fix what it names." },
];

/**
 * Runs every check and then the tests, up to the first that fails.
 *
 * @returns the exit code: 0 if all is well, else that of the check that failed
 */
export async function runChecks(vitestArgs: readonly string[], stop: AbortSignal): Promise<number> {
  const reporters = ["--reporter=default", "--reporter=./scripts/summary-reporter.ts"];
  const advice = "The failures are listed above.";
  const tests = { name: "Tests", program: "vitest", args: ["run", ...reporters, ...vitestArgs], advice };
  for (const check of [...staticChecks, tests]) {
    console.log(`\n── ${check.name}`);
    const exitCode = await runCheck(check, stop);
    if (stop.aborted) return 130;
    if (exitCode === 0) continue;
    console.error(`\n✗ ${check.name}: failed. ${check.advice}`);
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
