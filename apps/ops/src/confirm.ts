import { createInterface } from "node:readline/promises";
import { CommandFailure } from "./command-failure.ts";
import type { Context } from "./context.ts";

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
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    const answer = await terminal.question(`${what}? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim())) throw new CommandFailure("Nothing was done.");
  } finally {
    terminal.close();
  }
}
