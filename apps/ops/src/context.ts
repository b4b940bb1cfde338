import type { Readable, Writable } from "node:stream";

/** A stream to a person or a program. Only a terminal has a width. */
export type Output = Writable & { isTTY?: boolean; columns?: number };

/** All that a command reads and writes besides its arguments, files and services. */
export interface Context {
  stdin: Readable & { isTTY?: boolean };
  stdout: Output;
  /** Remarks and errors, so that stdout can be piped. */
  stderr: Output;
  environment: Record<string, string | undefined>;
  now: () => Date;
}
