import { spawn } from "node:child_process";
import { once } from "node:events";
import { binary, root } from "./clone.ts";
import { say } from "./progress.ts";
import { together } from "./together.ts";

export interface Check {
  name: string;
  /** One of node_modules/.bin. */
  program: string;
  args: readonly string[];
}

const isTerminal = process.stdout.isTTY === true;

const sourceChecks: readonly Check[] = [
  {
    name: "Format and lint (`npm run format` fixes most of it)",
    program: "biome",
    // In CI, Biome would colour each character by itself, even in a file.
    args: ["ci", ".", `--colors=${isTerminal ? "force" : "off"}`],
  },
  {
    name: "Types",
    program: "tsc",
    // Checking in several threads takes twice the CPU, and the tests run beside.
    args: ["--noEmit", "-p", "tsconfig.json", "--singleThreaded", ...(isTerminal ? ["--pretty"] : [])],
  },
  { name: "Unused code and dependencies", program: "knip", args: [] },
];

/**
 * Checks the sources and runs the tests.
 *
 * @param prepare what must be done before that, for the tests only
 * @returns the exit code: 0 if all is well, else that of what failed first
 */
export function runChecks(
  vitestArgs: readonly string[],
  stop: AbortSignal,
  prepare?: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const reporters = ["--reporter=default", "--reporter=./scripts/summary-reporter.ts"];
  const tests = { name: "Tests", program: "vitest", args: ["run", ...reporters, ...vitestArgs] };
  say("Beside the tests, format, lint, types and unused code are checked, and print only what is wrong.");
  return runBeside({ prepare, tests, quiet: sourceChecks, stop });
}

/**
 * Runs the tests, whose output is shown as it comes, and at the same time, in their order, quiet checks, whose output is
 * shown if they fail. The first failure stops everything else, so that it is the last that is printed.
 *
 * @returns as above
 */
export async function runBeside(checks: {
  prepare?: ((signal: AbortSignal) => Promise<void>) | undefined;
  tests: Check;
  quiet: readonly Check[];
  stop: AbortSignal;
}): Promise<number> {
  try {
    await together(checks.stop, [
      async (signal) => {
        await checks.prepare?.(signal);
        if (!signal.aborted) say(`\n── ${checks.tests.name}`);
        await run(checks.tests, "inherit", signal);
      },
      async (signal) => {
        for (const check of checks.quiet) await run(check, "pipe", signal);
      },
    ]);
  } catch (error) {
    if (!(error instanceof CheckFailed)) throw error;
    if (!checks.stop.aborted) say(`\n${error.output}\n✗ ${error.message}`);
    return checks.stop.aborted ? 130 : error.exitCode;
  }
  return checks.stop.aborted ? 130 : 0;
}

class CheckFailed extends Error {
  readonly exitCode: number;
  readonly output: string;

  constructor(name: string, exitCode: number, output: string) {
    super(`${name}: failed.`);
    this.exitCode = exitCode;
    this.output = output;
  }
}

/** @throws CheckFailed, unless it was told to stop */
async function run(check: Check, output: "inherit" | "pipe", signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const colors = isTerminal ? { FORCE_COLOR: "1" } : {};
  const child = spawn(binary(check.program), check.args, {
    cwd: root,
    env: { ...process.env, ...colors },
    stdio: ["ignore", output, output],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  const interrupt = () => child.kill("SIGINT");
  signal.addEventListener("abort", interrupt);
  const [code] = await once(child, "close");
  signal.removeEventListener("abort", interrupt);
  if (code !== 0 && !signal.aborted) throw new CheckFailed(check.name, code ?? 1, printed);
}
