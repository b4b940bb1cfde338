import { readLetter } from "@booking-events/operations";
import { parseJson } from "@booking-events/schema";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseEventId } from "../../terminal/arguments.ts";
import { printHeading, printJson, printLine } from "../../terminal/print.ts";
import { describeState, printLetter } from "./letters.ts";

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
      const { envelope, ...letter } = await readLetter(context, eventId);
      const queued: unknown = payload ? parseIfJson(envelope.toString()) : undefined;
      if (json) {
        printJson(context.stdout, { ...letter, envelope: queued });
        return;
      }
      const { stdout } = context;
      printHeading(stdout, `Dead letter ${eventId}: ${describeState(letter)}`);
      printLine(stdout);
      printLetter(stdout, letter);
      if (!payload) return;
      printLine(stdout);
      printHeading(stdout, "Queued");
      printJson(stdout, queued);
    });
}

/** The queue may hold anything. What is not JSON is shown as text. */
function parseIfJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
