import type { ShownKeys } from "@booking-events/operations";
import type { Context } from "../../context.ts";
import { printLine } from "../../terminal/print.ts";

/** Prints the only copy of a secret or token, or the public key. */
export function printKeys({ stdout }: Context, heading: string, shown: ShownKeys): void {
  printLine(stdout, heading);
  printLine(stdout);
  for (const value of Object.values(shown)) printLine(stdout, `  ${value}`);
  printLine(stdout);
  printLine(stdout, "publicKey" in shown ? describePublic : describeSecret);
}

const describePublic =
  "It is public: by this key the subscriber verifies the signature of each post (docs/subscriber-guide.md).";
const describeSecret =
  "It is shown only now. Give it to the subscriber through a secure channel, with docs/subscriber-guide.md, and keep " +
  "it out of logs.";

export function nameKeys(shown: ShownKeys): string {
  if ("token" in shown) return "token";
  return "secret" in shown ? "secret" : "public key";
}
