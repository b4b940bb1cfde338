import { delimiter } from "node:path";
import { binaries, binary, root } from "./clone.ts";
import { CommandFailed, commandOutput } from "./command.ts";
import { SetupProblem } from "./setup-problem.ts";

/** Builds what has changed since its last build. */
export const buildCommand = {
  program: "turbo",
  args: ["run", "build", "--output-logs=errors-only"],
  environment: {
    TURBO_TELEMETRY_DISABLED: "1",
    TURBO_NO_UPDATE_NOTIFIER: "1",
    // Turbo runs pnpm, which scripts/bootstrap.mjs puts there.
    PATH: [binaries, process.env["PATH"]].join(delimiter),
  },
} as const;

/** Builds without a word. Resolves to how much there was to do. */
export async function build(signal?: AbortSignal): Promise<string> {
  try {
    const { program, args, environment } = buildCommand;
    const output = await commandOutput(binary(program), args, {
      cwd: root,
      env: { ...process.env, ...environment },
      signal,
    });
    const [, cached, total] = /Cached:\s+(\d+) cached, (\d+) total/.exec(output) ?? [];
    return cached === total ? "nothing to do" : `${Number(total) - Number(cached)} of ${total} packages`;
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw new SetupProblem(
      `The build failed:\n\n${error.output.trim()}`,
      "Fix what it names, and see with `npm run build` that it is gone.",
      { cause: error },
    );
  }
}
