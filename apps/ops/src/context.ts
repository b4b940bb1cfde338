import type { Readable, Writable } from "node:stream";
import type { Context as Operations } from "@booking-events/operations";

/** Only a terminal has a width. */
export type Output = Writable & { isTTY?: boolean; columns?: number };

/** What a command uses besides its arguments. */
export type Context = Terminal & Operations;

/** Where a command runs. */
export interface Terminal {
  stdin: Readable & { isTTY?: boolean };
  stdout: Output;
  /** For remarks and errors, so stdout can be piped. */
  stderr: Output;
  environment: Operations["environment"];
  now: Operations["now"];
  /**
   * A command without an end calls this first: the process then ends, with success, when the reader of its output has
   * gone. The output of other commands is dropped from then on, and they finish.
   */
  endWithReader: () => void;
  /** Says what to print to stderr if a signal ends the command: what was done, and how to go on. */
  atSignal: (describe: () => string) => void;
}
