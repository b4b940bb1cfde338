import { createInterface } from "node:readline/promises";
import type { Context } from "../context.ts";
import { CommandFailure } from "./command-failure.ts";

/**
 * Asks on the terminal before something is done. The question goes to stderr, so that stdout can be piped.
 *
 * @param what what would be done, as the beginning of a question
 * @throws CommandFailure when the answer is not yes, or when there is nobody to ask
 */
export async function confirm({ stdin, stderr }: Context, what: string, isConfirmed: boolean): Promise<void> {
  if (isConfirmed) {
    stderr.write(`${what}.\n`);
    return;
  }
  if (stdin.isTTY !== true) {
    throw new CommandFailure(`${what}? There is no terminal to ask on: add --yes. Nothing was done.`, { exitCode: 2 });
  }
  const answer = await ask(`${what}? [y/N] `, { stdin, stderr });
  // Ctrl-C and Ctrl-D leave the cursor behind the question.
  if (answer === null) stderr.write("\n");
  if (!/^y(es)?$/i.test(answer?.trim() ?? "")) throw new CommandFailure("Nothing was done.");
}

/** @returns null for Ctrl-C, Ctrl-D and the end of the input, of which a question of readline's own tells nothing or throws */
async function ask(question: string, { stdin, stderr }: Pick<Context, "stdin" | "stderr">): Promise<string | null> {
  const terminal = createInterface({ input: stdin, output: stderr, prompt: question });
  try {
    terminal.prompt();
    for await (const line of terminal) return line;
    return null;
  } finally {
    terminal.close();
  }
}
