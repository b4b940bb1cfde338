import { text } from "node:stream/consumers";
import { spawnApp } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";

/** Runs a command of the operator. Aborting the signal kills it. */
export type Operate = (args: readonly string[], signal: AbortSignal) => Promise<Ran>;

interface Ran {
  /** Null: it was killed. */
  exitCode: number | null;
  stdout: string;
  /** By both of its outputs. */
  printed: string;
}

export function operateWith(program: readonly string[], environment: Record<string, string>): Operate {
  return async (args, signal) => {
    const child = spawnApp(
      [...(await bundleProgram(program)), ...args],
      { OPERATOR: "chaos", ...environment },
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const kill = () => child.kill("SIGKILL");
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    const { promise: exitCode, resolve } = Promise.withResolvers<number | null>();
    child.once("close", resolve);
    const outputs = [child.stdout, child.stderr].map((output) => (output === null ? "" : text(output)));
    const [stdout = "", stderr = ""] = await Promise.all(outputs);
    signal.removeEventListener("abort", kill);
    return { exitCode: await exitCode, stdout, printed: stdout + stderr };
  };
}
