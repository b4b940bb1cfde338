import { type NewSecret, toSeconds } from "@booking-events/operations";
import type { EventKind } from "@booking-events/schema";
import type { Context } from "../../context.ts";
import { printLine } from "../../terminal/print.ts";

export function printSecret({ stdout }: Context, heading: string, { secret }: NewSecret, kinds: EventKind[]): void {
  printLine(stdout, heading);
  printLine(stdout);
  printLine(stdout, `  ${secret}`);
  printLine(stdout);
  printLine(stdout, "It is shown only now. Give it to the partner through a secure channel, and keep it out of logs.");
  printLine(stdout, "The partner sends events by POST to these URLs, which end with the secret:");
  printLine(stdout);
  for (const kind of kinds) printLine(stdout, `  https://<your host>/booking-event/${kind}/<secret>`);
}

export function describeExpiry(expiresAt: Date | null): string {
  return expiresAt === null ? "does not expire" : `expires at ${toSeconds(expiresAt)}`;
}
