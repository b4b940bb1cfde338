import { spawn } from "node:child_process";

export interface CommandOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  uid?: number;
  gid?: number;
  /** Ends the command when the user stops everything. */
  signal?: AbortSignal | undefined;
}

/** A command that ended badly, with everything it printed. */
export class CommandFailed extends Error {
  readonly output: string;

  constructor(command: string, how: string, output: string) {
    super(`\`${command}\` failed (${how})${output.trim() === "" ? "" : `:\n${output.trimEnd()}`}`);
    this.name = "CommandFailed";
    this.output = output;
  }
}

/** Runs a command without input and resolves to what it printed on standard output. */
export async function commandOutput(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const { signal, ...spawnOptions } = options;
  signal?.throwIfAborted();
  const child = spawn(file, args, { ...spawnOptions, stdio: ["ignore", "pipe", "pipe"] });
  const end = () => child.kill("SIGTERM");
  signal?.addEventListener("abort", end);
  let output = "";
  let standardOutput = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    standardOutput += text;
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  try {
    const how = await new Promise<string | undefined>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("close", (code, endedBy) => resolve(code === 0 ? undefined : (endedBy ?? `exit code ${code}`)));
    });
    signal?.throwIfAborted();
    if (how !== undefined) throw new CommandFailed([file, ...args].join(" "), how, output);
    return standardOutput;
  } finally {
    signal?.removeEventListener("abort", end);
  }
}
