import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

/** What is checked before the tests. */
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
 * @returns the exit code: 0 if all is well, else that of the check which failed
 */
export async function runChecks(vitestArgs: readonly string[], stop: AbortSignal): Promise<number> {
  for (const check of staticChecks) {
    const exitCode = await runCheck(check, stop);
    if (exitCode !== 0) return exitCode;
  }
  return runTests(vitestArgs, stop);
}

/** The tests, whose summary comes last: vitest's own, and under it one line that a machine can read. */
async function runTests(vitestArgs: readonly string[], stop: AbortSignal): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "booking-events-results-"));
  const resultFile = join(dir, "results.json");
  try {
    const exitCode = await runCheck(
      {
        name: "Tests",
        program: "vitest",
        args: ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${resultFile}`, ...vitestArgs],
        advice: "The failures are listed above.",
      },
      stop,
    );
    if (existsSync(resultFile)) console.log(`\n${summaryLine(JSON.parse(readFileSync(resultFile, "utf8")), exitCode)}`);
    return exitCode;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function runCheck(check: Check, stop: AbortSignal): Promise<number> {
  console.log(`\n── ${check.name}`);
  const exitCode = await exitCodeOf(check, stop);
  if (exitCode !== 0 && !stop.aborted) console.error(`\n✗ ${check.name}: failed. ${check.advice}`);
  return exitCode;
}

function exitCodeOf({ program, args, environment }: Check, stop: AbortSignal): Promise<number> {
  if (stop.aborted) return Promise.resolve(130);
  return new Promise((resolve, reject) => {
    const child = spawn(binary(program), args, {
      cwd: root,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "inherit", "inherit"],
    });
    stop.addEventListener("abort", () => child.kill("SIGINT"));
    child.once("error", reject);
    child.once("close", (code) => resolve(stop.aborted ? 130 : (code ?? 1)));
  });
}

/** As much of vitest's JSON report as the summary needs. */
export interface TestResults {
  numPassedTests: number;
  numFailedTests: number;
  testResults: { status: string; assertionResults: { status: string }[] }[];
}

/**
 * "12 passed, 0 failed". A file that fails outside its tests counts as one failure, and so does a run that failed for
 * another reason, such as an error that no test caught: the line never says 0 failed of a run that did.
 */
export function summaryLine({ numPassedTests, numFailedTests, testResults }: TestResults, exitCode: number): string {
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  );
  const failures = numFailedTests + brokenFiles.length;
  return `${numPassedTests} passed, ${failures === 0 && exitCode !== 0 ? 1 : failures} failed`;
}
