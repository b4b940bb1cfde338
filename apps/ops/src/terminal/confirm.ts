import { createInterface } from "node:readline/promises";
import type { Context } from "../context.ts";
import { CommandFailure } from "./command-failure.ts";

/**
 * Asks for confirmation on the terminal. The question goes to stderr, so stdout can be piped.
 *
 * @param what the question without its question mark
 * @param isConfirmed the operator has confirmed by --yes
 * @throws CommandFailure if the answer is not yes, or if there is no terminal
 */
export async function confirm({ stdin, stderr }: Context, what: string, isConfirmed: true | undefined): Promise<void> {
  if (isConfirmed) {
    stderr.write(`${what}.\n`);
    return;
  }
  if (stdin.isTTY !== true) {
    throw new CommandFailure(`${what}? There is no terminal for the answer. Add --yes. Nothing was done.`, {
      exitCode: 2,
    });
  }
  const answer = await readLine({ stdin, stderr }, `${what}? [y/N] `);
  // After Ctrl-C and Ctrl-D the cursor is still on the line of the question.
  if (answer === null) stderr.write("\n");
  if (!/^y(es)?$/i.test(answer?.trim() ?? "")) throw new CommandFailure("Nothing was done.");
}

/**
 * Reads one line. Unlike `question` of readline, this also handles Ctrl-C, Ctrl-D and the end of the input.
 *
 * @returns null if there is none
 */
export async function readLine(
  { stdin, stderr }: Pick<Context, "stdin" | "stderr">,
  prompt: string,
): Promise<string | null> {
  const terminal = createInterface({ input: stdin, output: stderr, prompt });
  try {
    terminal.prompt();
    for await (const line of terminal) return line;
    return null;
  } finally {
    terminal.close();
  }
}
