import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

interface CommandOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  /** Ends the command when it is aborted. */
  signal?: AbortSignal | undefined;
}

/** Runs a command and resolves to what it printed on standard output; rejects with everything that it printed. */
export async function runCommand(file: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  try {
    return (await execute(file, args, { ...options, encoding: "utf8", maxBuffer: Number.POSITIVE_INFINITY })).stdout;
  } catch (error) {
    options.signal?.throwIfAborted();
    const { code, signal, stdout = "", stderr = "" } = error as { code: unknown } & Record<string, string | undefined>;
    const output = `${stdout}${stderr}`.trim();
    throw new Error(`\`${[file, ...args].join(" ")}\` failed (${signal ?? code})${output && `:\n${output}`}`);
  }
}
