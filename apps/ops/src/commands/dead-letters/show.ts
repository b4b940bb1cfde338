import { findEvent } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printHeading, printJson, printLine } from "../../terminal/print.ts";
import { describeState, printLetter, readQueued } from "./letters.ts";

export function addShowCommand(deadLetters: Command, context: Context): void {
  deadLetters
    .command("show")
    .description(
      "Show one dead letter, and what became of it. The queued event holds personal data of guests, and is shown " +
        "only with --payload.",
    )
    .argument("<eventId>", "a UUID", parseEventId)
    .option("--payload", "show the queued event, with personal data of guests")
    .option("--json", "print a JSON object as in the list, and envelope (with --payload)")
    .addHelpText("after", "\nExample:\n  $ ops dead-letters show 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e")
    .action(async (eventId, { payload, json }) => {
      const { deadLetter } = await findEvent(context, eventId);
      if (deadLetter === undefined)
        throw new CommandFailure(
          `Event ${eventId} has no dead letter. See what became of it: ops events show ${eventId}`,
        );
      const queued = payload ? readQueued(deadLetter) : undefined;
      const { stdout } = context;
      if (json) return printJson(stdout, { ...deadLetter, envelope: queued });
      printHeading(stdout, `Dead letter ${eventId}: ${describeState(deadLetter)}`);
      printLine(stdout);
      printLetter(stdout, deadLetter);
      if (!payload) return;
      printLine(stdout);
      printHeading(stdout, "Queued");
      printJson(stdout, queued);
    });
}
