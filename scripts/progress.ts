import { SetupProblem } from "./setup-problem.ts";

/** How long a step may take before it is named, so that nobody thinks that nothing happens. */
const SLOW_STEP_MS = 2_000;

// The reader of the pipe, or the terminal, may be gone before us.
process.stdout.on("error", () => {});

export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Runs one step and reports its end, with what `describe` says of its result. */
export async function step<Result>(
  name: string,
  work: () => Promise<Result>,
  describe: (result: Result) => string = () => "",
): Promise<Result> {
  const startedAtMs = Date.now();
  const isSlow = setTimeout(() => say(`… ${name}`), SLOW_STEP_MS);
  try {
    const result = await work();
    const detail = describe(result);
    say(`✓ ${name}${detail && `: ${detail}`} (${((Date.now() - startedAtMs) / 1_000).toFixed(1)} s)`);
    return result;
  } finally {
    clearTimeout(isSlow);
  }
}

/** What went wrong, and what to do about it. */
export function showProblem(error: unknown): void {
  if (error instanceof SetupProblem) say(`\n✗ ${error.message}\n\n  What to do: ${error.advice}`);
  else say(`\n✗ ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
}
