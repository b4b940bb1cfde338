import { delimiter } from "node:path";
import { binaries, binary, root } from "./clone.ts";
import { runCommand } from "./run-command.ts";
import { SetupProblem } from "./setup-problem.ts";

/**
 * Builds what has changed since its last build, without printing anything. Resolves to how much there was to do.
 *
 * @param only options of Turbo that choose packages; none: all
 */
export async function build(signal?: AbortSignal, only: string[] = []): Promise<string> {
  const env = {
    ...process.env,
    TURBO_TELEMETRY_DISABLED: "1",
    TURBO_NO_UPDATE_NOTIFIER: "1",
    // Turbo runs pnpm, which scripts/bootstrap.mjs puts there.
    PATH: [binaries, process.env["PATH"]].join(delimiter),
  };
  try {
    const args = ["run", "build", "--output-logs=errors-only", ...only];
    const output = await runCommand(binary("turbo"), args, { cwd: root, env, signal });
    const [, cached, total] = /Cached:\s+(\d+) cached, (\d+) total/.exec(output) ?? [];
    return cached === total ? "nothing to do" : `${Number(total) - Number(cached)} of ${total} packages`;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new SetupProblem(`The build failed. ${cause}`, "Fix what it names, and check it with `npm run build`.", {
      cause,
    });
  }
}
